import { Client, DatabaseError, escapeIdentifier as quoted } from 'pg';
import { Failure } from '../../core/values/failure.ts';
import { type Json, sameJson } from '../../core/values/json/json.ts';
import {
  type ColumnType,
  type Columns,
  columnValues,
  columnsOf,
  hasNewField,
  writeOnlyNames,
} from './columns.ts';
import type { FollowTarget, FollowedTable, RowPacket } from './follow-tables.ts';

/** How long connecting to PostgreSQL may take. */
const postgresConnectMs = 10_000;

/** A database, and the schema in it that gets a table for each table that is followed. */
interface PostgresOptions {
  /** `postgres://user[:password]@host[:port]/database`. */
  readonly url: string;
  readonly schema: string;
}

interface Copied {
  readonly position: number;
  readonly columns: Columns;
}

/**
 * A copy in PostgreSQL (docs/design/records.md#a-copy-in-postgresql). Rows and the position in the
 * log change in one transaction, so each change is copied exactly once. Methods reject with
 * `unavailable` if the connection is lost, with `conflict` for an error of PostgreSQL that another
 * attempt would repeat.
 */
export class PostgresTarget implements FollowTarget {
  readonly #options: PostgresOptions;
  readonly #tables = new Map<string, Copied>();
  #client: Client | undefined;

  constructor(options: PostgresOptions) {
    this.#options = options;
  }

  async open(): Promise<void> {
    await this.close();
    const { url, schema } = this.#options;
    const client = new Client({
      connectionString: url,
      connectionTimeoutMillis: postgresConnectMs,
      application_name: 'waymark follow',
      keepAlive: true,
    });
    // An error between two queries rejects the next one.
    client.on('error', () => undefined);
    await translated(async () => client.connect());
    this.#client = client;
    await this.#query(`set client_min_messages = warning`);
    const version = Number((await this.#query('show server_version_num'))[0]?.server_version_num);
    if (version < oldestVersion) {
      throw new Failure('conflict', 'waymark follow needs PostgreSQL 16 or newer.');
    }
    const locked = await this.#query('select pg_try_advisory_lock(hashtext($1)) as locked', [
      `waymark follow ${schema}`,
    ]);
    if (locked[0]?.locked !== true) {
      const message = `Another waymark follow writes to the schema ${schema} of this database.`;
      throw new Failure('conflict', message);
    }
    await this.#query(`create schema if not exists ${quoted(schema)}`);
    await this.#query(
      `create table if not exists ${this.#name(positions)} (` +
        '"table" text primary key, seq bigint not null, columns jsonb not null, ' +
        'copied_at timestamptz not null default now())',
    );
  }

  async position({ name, schema }: FollowedTable): Promise<number> {
    const select = `select seq, columns from ${this.#name(positions)} where "table" = $1`;
    const [row] = await this.#query(select, [name]);
    if (row === undefined) await this.#inTransaction(() => this.#create(name, columnsOf(schema)));
    else {
      const copied = { position: Number(row.seq), columns: row.columns as Columns };
      this.#tables.set(name, copied);
      await this.update({ name, schema });
    }
    return this.#copied(name).position;
  }

  needsSchema({ table, record }: RowPacket): boolean {
    return record !== null && hasNewField(record, this.#copied(table).columns);
  }

  async update({ name, schema }: FollowedTable): Promise<void> {
    const { position, columns } = this.#copied(name);
    const wanted = { ...columns, ...columnsOf(schema) };
    const hidden = writeOnlyNames(schema).filter((one) => Object.hasOwn(columns, one));
    const kept = Object.fromEntries(
      Object.entries(wanted).filter(([column]) => !hidden.includes(column)),
    );
    if (sameJson(kept, columns)) return;
    const changes = alterations(columns, kept);
    const cleared = hidden.map((column) => `${quoted(column)} = null`);
    const own = this.#name(name);
    await this.#inTransaction(async () => {
      if (changes.length > 0) await this.#query(`alter table ${own} ${changes.join(', ')}`);
      if (cleared.length > 0) await this.#query(`update ${own} set ${cleared.join(', ')}`);
      const update = `update ${this.#name(positions)} set columns = $2 where "table" = $1`;
      await this.#query(update, [name, JSON.stringify(kept)]);
    });
    this.#tables.set(name, { position, columns: kept });
  }

  async apply(packets: readonly RowPacket[]): Promise<void> {
    const byTable = Map.groupBy(packets, ({ table }) => table);
    const moved = new Map<string, Copied>();
    await this.#inTransaction(async () => {
      for (const [table, changes] of byTable) {
        const copied = this.#copied(table);
        const news = changes.filter(({ seq }) => seq > copied.position);
        const last = news.at(-1);
        if (last === undefined) continue;
        await this.#write(table, copied.columns, news);
        await this.#move(table, copied.position, last.seq);
        moved.set(table, { ...copied, position: last.seq });
      }
    });
    for (const [table, copied] of moved) this.#tables.set(table, copied);
  }

  async restart(table: string): Promise<void> {
    await this.#inTransaction(async () => {
      await this.#query(`drop table if exists ${this.#name(table)}`);
      await this.#query(`delete from ${this.#name(positions)} where "table" = $1`, [table]);
    });
  }

  async close(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    await client?.end().catch(() => undefined);
  }

  async #create(table: string, columns: Columns): Promise<void> {
    const own = Object.entries(columns).map(([name, type]) => `, ${quoted(name)} ${type}`);
    await this.#query(
      `create table ${this.#name(table)} ` +
        `(id uuid primary key, seq bigint not null${own.join('')}, _unknowns_ jsonb)`,
    );
    const into = `insert into ${this.#name(positions)} ("table", seq, columns)`;
    await this.#query(`${into} values ($1, 0, $2)`, [table, JSON.stringify(columns)]);
    this.#tables.set(table, { position: 0, columns });
  }

  /** Of several changes of a row, the last one decides. */
  async #write(table: string, columns: Columns, changes: readonly RowPacket[]): Promise<void> {
    const rows = new Map(changes.map(({ id, record }) => [id, record]));
    const gone = [...rows].flatMap(([id, record]) => (record === null ? [id] : []));
    const present = [...rows.values()].filter((record) => record !== null);
    const own = this.#name(table);
    if (gone.length > 0) {
      await this.#query(`delete from ${own} where id = any($1::uuid[])`, [gone]);
    }
    if (present.length === 0) return;
    const all = { seq: 'bigint', ...columns, _unknowns_: 'jsonb' };
    const names = Object.keys(all).map(quoted);
    const types = Object.entries(all).map(([name, type]) => `${quoted(name)} ${type}`);
    const values = present.map((record) => columnValues(record, columns));
    await this.#query(
      `insert into ${own} (id, ${names.join(', ')}) select id, ${names.join(', ')} ` +
        `from jsonb_to_recordset($1::jsonb) as r(id uuid, ${types.join(', ')}) ` +
        'on conflict (id) do update set ' +
        names.map((name) => `${name} = excluded.${name}`).join(', '),
      [JSON.stringify(values)],
    );
  }

  async #move(table: string, from: number, to: number): Promise<void> {
    const update =
      `update ${this.#name(positions)} set seq = $2, copied_at = now() ` +
      'where "table" = $1 and seq = $3 returning seq';
    if ((await this.#query(update, [table, to, from])).length === 1) return;
    const message = `Something else has moved the position of ${table} in ${positions}.`;
    throw new Failure('conflict', message);
  }

  #copied(table: string): Copied {
    const copied = this.#tables.get(table);
    if (copied === undefined) throw new TypeError(`${table} is not followed`);
    return copied;
  }

  #name(table: string): string {
    return `${quoted(this.#options.schema)}.${quoted(table)}`;
  }

  async #inTransaction(run: () => Promise<void>): Promise<void> {
    await this.#query('begin');
    try {
      await run();
      await this.#query('commit');
    } catch (error) {
      await this.#query('rollback').catch(() => undefined);
      throw error;
    }
  }

  async #query(text: string, values: readonly unknown[] = []): Promise<readonly ResultRow[]> {
    const client = this.#client;
    if (client === undefined) throw new Failure('unavailable', 'There is no connection.');
    return translated(async () => (await client.query<ResultRow>(text, [...values])).rows);
  }
}

type ResultRow = Readonly<Record<string, Json>>;

/** The table with the position and the columns of each copied table; no table has such a name. */
const positions = '_position';

/** `pg_input_is_valid` is there since then. */
const oldestVersion = 160_000;

/** The clauses of ALTER TABLE. A value that the new type does not permit becomes null. */
function alterations(before: Columns, after: Columns): readonly string[] {
  return Object.entries(after).flatMap(([name, type]) => {
    const former = Object.hasOwn(before, name) ? before[name] : undefined;
    if (former === type) return [];
    if (former === undefined) return [`add column ${quoted(name)} ${type}`];
    const using = conversion(quoted(name), former, type);
    return [`alter column ${quoted(name)} type ${type} using ${using}`];
  });
}

function conversion(column: string, from: ColumnType, to: ColumnType): string {
  if (to === 'jsonb') return `to_jsonb(${column})`;
  const text = from === 'jsonb' ? `(${column} #>> '{}')` : `${column}::text`;
  if (to === 'text') return text;
  return `case when pg_input_is_valid(${text}, '${to}') then ${text}::${to} end`;
}

/** Classes of SQLSTATE after which another attempt may succeed. */
const passing = /^(?:08|40|53|55|57|58)/;

async function translated<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (cause) {
    if (cause instanceof Failure) throw cause;
    const { message } = cause as Error;
    const code = cause instanceof DatabaseError ? (cause.code ?? '') : undefined;
    const isPassing = code === undefined || passing.test(code);
    const what = code === undefined ? '' : ` (${code})`;
    throw new Failure(isPassing ? 'unavailable' : 'conflict', `PostgreSQL: ${message}${what}`, {
      cause,
    });
  }
}
