import { createHash } from 'node:crypto';
import type { Task } from '../../core/background/tasks.ts';
import { eventDraft, ownEvent } from '../../core/log/events/event.ts';
import type { LoggedDraft, Reads, Store } from '../../core/log/store.ts';
import type { Log } from '../../core/report/log.ts';
import { Failure } from '../../core/values/failure.ts';
import { type Json, type JsonObject, sameJson } from '../../core/values/json/json.ts';
import type { ApiSocket } from '../peers/api-socket.ts';
import { parseDefinition } from '../tables/definition.ts';
import type { StoredTable } from '../tables/table.ts';
import type { DataHost, HostClient } from './host-client.ts';
import { storedTables } from '../tables/log/family.ts';

/** Limits of tables whose rows another server has. */

/** How often the server requests the schema of a table from its data host. */
const hostSchemaMs = 1_000;

/** How long to wait before the next attempt to connect to a data host, at first and at most. */
const hostRetryMs = 500;
const hostRetryMsMax = 60_000;

/** The state of a table that has its rows on another server. */
export interface TableHostState {
  readonly table: string;
  /** The URL of the data host. */
  readonly host: string;
  /** `other_node` if another node of the cluster follows it. */
  readonly state: 'connecting' | 'connected' | 'waiting' | 'other_node';
  /** Since when, ISO 8601, UTC. */
  readonly since: string;
  /** Why there is no connection; null with one. */
  readonly problem: string | null;
  /** The seq of the host up to which its changes have raised events; null before the first. */
  readonly seq: number | null;
}

export interface HostFollowerParts {
  readonly store: Store;
  readonly client: () => HostClient;
  readonly newId: () => string;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly log: Log;
}

/**
 * Follows the data host of a table (docs/design/records.md#rows-on-another-server): stores its
 * schema in the definition of the table, and raises `record.changed` for each change of a row.
 */
export class HostFollower {
  readonly #parts: HostFollowerParts;
  readonly #table: string;
  readonly #host: DataHost;
  #state: Omit<TableHostState, 'table' | 'host'>;
  /** The seq of the host after which changes raise events; undefined until it is connected. */
  #position: number | undefined;

  constructor(parts: HostFollowerParts, table: string, host: DataHost) {
    [this.#parts, this.#table, this.#host] = [parts, table, host];
    this.#state = { state: 'connecting', since: this.#time(), problem: null, seq: null };
  }

  get state(): TableHostState {
    return { table: this.#table, host: this.#host.url, ...this.#state, seq: this.#seq() };
  }

  get task(): Task {
    return {
      name: 'table_host',
      title: `The connection to the data host of the table ${this.#table}`,
      meanwhile: 'The server uses the last known schema.',
      retryMs: { minMs: hostRetryMs, maxMs: hostRetryMsMax },
      run: (signal, well) => this.#follow(signal, well),
      failed: (error) => {
        const problem = error instanceof Error ? error.message : unexpected;
        const since = this.#state.state === 'waiting' ? this.#state.since : this.#time();
        this.#state = { ...this.#state, state: 'waiting', since, problem };
      },
    };
  }

  /** Follows over one websocket until it ends. */
  async #follow(signal: AbortSignal, connected: () => void): Promise<void> {
    const socket = await this.#parts.client().connect(this.#host, signal);
    try {
      await this.#readSchema(socket);
      this.#position ??= lastRaised(this.#parts.store, this.#claims()).seq;
      const seq = await this.#subscribe(socket);
      this.#position ??= seq;
      connected();
      this.#state = { ...this.#state, state: 'connected', since: this.#time(), problem: null };
      let readMs = performance.now();
      while (!signal.aborted) {
        const packets = await socket.next(hostSchemaMs);
        await this.#raise(packets.map(({ data }) => data as unknown as HostChange));
        if (performance.now() - readMs < hostSchemaMs) continue;
        readMs = performance.now();
        await this.#readSchema(socket);
      }
    } finally {
      socket.close();
    }
  }

  async #subscribe(socket: ApiSocket): Promise<number> {
    const name = 'svc1.record.subscribe';
    const table = this.#table;
    const from = this.#position === undefined ? {} : { from_seq: this.#position };
    try {
      return Number((await socket.subscribe(name, { table, ...from })).data.seq);
    } catch (error) {
      const isOther = error instanceof Failure && error.field === 'from_seq';
      if (!isOther) throw error;
      const message =
        'The log of the data host is another one than before. Events start with its next change.';
      this.#parts.log.warn({ table, ...from }, message);
      this.#position = undefined;
      return Number((await socket.subscribe(name, { table })).data.seq);
    }
  }

  /** Stores the schema of the host in the definition of the table, if it has changed. */
  async #readSchema(socket: ApiSocket): Promise<void> {
    const { store, log } = this.#parts;
    const table = this.#table;
    const { schema, key, title } = await socket.call('svc1.record.schema', { table });
    const known = { schema, key, title } as Readonly<Record<string, Json | undefined>>;
    const stored = store.of(storedTables).table(table);
    if (stored === undefined || Object.keys(changesTo(stored, known)).length === 0) return;
    const parsed = parseDefinition(withoutAbsent({ ...fieldsOf(stored), ...known }));
    if ('mistakes' in parsed) {
      const why = parsed.mistakes[0]?.message ?? '';
      throw new Failure('bad_gateway', `The schema of the data host cannot be used: ${why}`);
    }
    await store.commit(authorOf(table), (reads) => {
      const now = reads.of(storedTables).table(table);
      const data = now === undefined ? {} : changesTo(now, known);
      const isChanged = now !== undefined && Object.keys(data).length > 0;
      const draft = { family: 'table', id: now?.table.id ?? '', action: 'edit', data } as const;
      return { drafts: isChanged ? [draft] : [], answer: () => undefined };
    });
    log.info({ table }, 'The schema of the data host has changed; the table has the new one.');
  }

  /** Raises the events of changes, each once, whatever process does it. */
  async #raise(changes: readonly HostChange[]): Promise<void> {
    if (changes.length === 0) return;
    const { store, newId, now } = this.#parts;
    const claims = this.#claims();
    const table = this.#table;
    await store.commit(authorOf(table), (reads) => {
      const last = lastRaised(reads, claims);
      const news = changes.filter(({ seq }) => seq > (last.seq ?? 0));
      const drafts = news.map(({ id, seq, txn, action, data }, index): LoggedDraft => {
        const names = Object.keys(data).filter((name) => name !== 'id');
        const fields = action === 'invalidate' ? {} : { fields: names };
        const event = { table, id, action, ...fields, seq, txn };
        const claim = { vk: `${claims} ${last.count + index + 1}`, requestHash: hashOf(`${seq}`) };
        return { ...eventDraft(newId(), ownEvent('record.changed', event, now())), vk: claim };
      });
      return { drafts, answer: () => undefined };
    });
    this.#position = changes.at(-1)?.seq ?? this.#position;
  }

  /** The beginning of the vks that the events of this table at this host claim. */
  #claims(): string {
    return `host ${hashOf(`${this.#host.url} ${this.#table}`)}`;
  }

  #seq(): number | null {
    return this.#position ?? null;
  }

  #time(): string {
    return new Date(this.#parts.now()).toISOString();
  }
}

const unexpected = 'Something went wrong while following a data host.';

/** A change of a row, as record.subscribe of the host sends it. */
interface HostChange {
  readonly seq: number;
  readonly txn: string;
  readonly action: string;
  readonly id: string;
  readonly data: JsonObject;
}

function authorOf(table: string): string {
  return `host:${table}`;
}

/**
 * The number of events that were raised for a table at a host, and the seq of the host of the last
 * one. They claim vks that are numbered, so the log alone knows both, and a binary search finds
 * the last one.
 */
function lastRaised(
  reads: Pick<Reads, 'vkClaim' | 'change'>,
  claims: string,
): { readonly count: number; readonly seq: number | undefined } {
  const isThere = (count: number): boolean => reads.vkClaim(`${claims} ${count}`) !== undefined;
  let beyond = 1;
  while (isThere(beyond)) beyond *= 2;
  let [count, end] = [Math.floor(beyond / 2), beyond];
  while (end - count > 1) {
    const middle = Math.floor((count + end) / 2);
    if (isThere(middle)) count = middle;
    else end = middle;
  }
  const claim = count === 0 ? undefined : reads.vkClaim(`${claims} ${count}`);
  const data = claim && (reads.change(claim.seq)?.data.data as JsonObject | undefined);
  return { count, seq: data === undefined ? undefined : Number(data.seq) };
}

function fieldsOf({ table }: StoredTable): JsonObject {
  const { id: _id, _unknowns_: _waiting, ...fields } = table as unknown as JsonObject;
  return fields;
}

/** The edit that gives a table the values of its host. */
function changesTo(
  { table }: StoredTable,
  known: Readonly<Record<string, Json | undefined>>,
): JsonObject {
  const before = table as unknown as JsonObject;
  const changed = Object.entries(known).filter(([name, value]) => !sameJson(before[name], value));
  return Object.fromEntries(changed.map(([name, value]) => [name, value ?? null]));
}

function withoutAbsent(fields: Readonly<Record<string, Json | undefined>>): JsonObject {
  const present = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(present) as JsonObject;
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
