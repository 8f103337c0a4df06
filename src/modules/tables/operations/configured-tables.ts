import { Failure } from '../../../core/values/failure.ts';
import { sameJson, type Json, type JsonObject } from '../../../core/values/json/json.ts';
import type { StoredTable, TableDefinition } from '../table.ts';
import type { Log } from '../../../core/report/log.ts';
import type { LoggedDraft, Reads, Store } from '../../../core/log/store.ts';
import { definitionFields } from '../definition.ts';
import { rowChecksAuthor } from './row-checks.ts';
import { schemaEffect, type SchemaEffect } from './schema-change.ts';
import { counted } from '../../../core/values/units.ts';
import { eventLoop } from '../../../core/fair/turns.ts';
import { storedTables } from '../log/family.ts';

/** A table of the ini file. */
interface ConfiguredTable {
  readonly name: string;
  readonly definition: Omit<TableDefinition, 'id'>;
}

/** The author of the changes that the ini file makes. */
export const configuredTablesAuthor = 'server.ini';

/** The settings that decide which tables there are. */
interface TableSettings {
  readonly tables: readonly ConfiguredTable[];
  readonly node: { readonly central: string | undefined };
}

interface TableWriting {
  readonly store: Store;
  readonly newId: () => string;
  readonly log: Log;
}

/**
 * Writes the tables of the ini file that differ from those in the log; several processes that do it
 * write each change once. A table that cannot be changed so stays as it is, and the log says why.
 * Never rejects.
 */
export async function writeConfiguredTables(
  { tables, node }: TableSettings,
  { store, newId, log }: TableWriting,
): Promise<void> {
  // A node that follows a centre gets the tables of the centre.
  if (node.central !== undefined) return;
  for (const { name, definition } of tables) {
    try {
      const effect = await effectOf(store, definition);
      const action = await store.commit(configuredTablesAuthor, (reads) => {
        const draft = draftOf(reads, definition, newId);
        return { drafts: draft === undefined ? [] : [draft], answer: () => draft?.action };
      });
      if (action === undefined) continue;
      log.info({ table: name }, `The table ${name} is as [table.${name}] says.`);
      if (effect !== undefined && effect.invalid > 0) log.warn({ table: name }, sentence(effect));
    } catch (error) {
      const message = `Cannot apply [table.${name}]; the table stays as it is:`;
      if (error instanceof Failure) log.error({ table: name }, `${message} ${error.message}`);
      else log.error({ table: name, err: error }, message);
    }
  }
  try {
    nameFormerTables(tables, store, log);
  } catch (error) {
    log.error({ err: error }, 'Cannot read the tables that the ini file had before.');
  }
}

/** The effects of the tables of the ini file on rows in the log, as sentences. */
export async function tableWarnings(
  tables: readonly ConfiguredTable[],
  store: Reads,
): Promise<readonly string[]> {
  const sentences: string[] = [];
  for (const { name, definition } of tables) {
    const effect = await effectOf(store, definition);
    if (effect !== undefined && effect.invalid > 0) {
      sentences.push(`[table.${name}] is not applied yet. When it is: ${sentence(effect)}`);
    }
  }
  return sentences;
}

/** The effect of a definition on rows; undefined if the table is new, or has the schema already. */
async function effectOf(
  store: Reads,
  definition: ConfiguredTable['definition'],
): Promise<SchemaEffect | undefined> {
  const stored = store.of(storedTables).table(definition.name);
  if (stored === undefined || sameJson(stored.table.schema, definition.schema)) return undefined;
  if (store.of(storedTables).tableCounts(definition.name).rows === 0) return undefined;
  const after = { ...definition, id: stored.table.id };
  return schemaEffect(store, { before: stored.table, after }, eventLoop.turns('tables'));
}

function sentence({ rows, invalid, fields }: SchemaEffect): string {
  const named = Object.entries(fields).map(([name, count]) => `${name} of ${count}`);
  return (
    `Of ${counted(rows, 'row')}, ${invalid} ${invalid === 1 ? 'has' : 'have'} values ` +
    `that the schema does not permit ` +
    `(${named.join(', ')}); the server moves them to _unknowns_.`
  );
}

function draftOf(
  reads: Reads,
  definition: ConfiguredTable['definition'],
  newId: () => string,
): LoggedDraft | undefined {
  const fields = { ...definition } as unknown as JsonObject;
  const stored = reads.of(storedTables).table(definition.name);
  if (stored === undefined) {
    return { family: 'table', id: newId(), action: 'insert', data: fields };
  }
  const data = differenceTo(stored, fields);
  if (Object.keys(data).length === 0) return undefined;
  const isPending =
    'schema' in data && reads.of(storedTables).tableCounts(definition.name).rows > 0;
  const edit = isPending ? { ...data, rows_pending: true } : data;
  return { family: 'table', id: stored.table.id, action: 'edit', data: edit };
}

/** The edit that makes the fields of a table those of the ini file. */
function differenceTo({ table }: StoredTable, fields: JsonObject): JsonObject {
  const before = table as unknown as JsonObject;
  // The data host of a table says what the ini file does not: see hosts/host-follower.ts.
  const isOfHost = fields.host !== undefined && fields.host === before.host;
  const changes = definitionFields.flatMap((name): readonly (readonly [string, Json])[] => {
    if (isOfHost && hostFields.includes(name) && fields[name] === undefined) return [];
    if (sameJson(before[name], fields[name])) return [];
    return [[name, fields[name] ?? null]];
  });
  return Object.fromEntries(changes);
}

/** The fields of a definition that its data host knows. */
const hostFields: readonly string[] = ['schema', 'key', 'title'];

/** Names the tables that the ini file had before: operations can change them now. */
function nameFormerTables(tables: readonly ConfiguredTable[], store: Reads, log: Log): void {
  const named = new Set(tables.map(({ name }) => name));
  for (const { table } of store.of(storedTables).tablesAfter('')) {
    if (named.has(table.name)) continue;
    const latest = store.rows('table', table.id).findLast(({ by }) => by !== rowChecksAuthor);
    if (latest?.by !== configuredTablesAuthor) continue;
    log.info(
      { table: table.name },
      `The ini file no longer has [table.${table.name}]: the table stays, with its rows, and ` +
        'operations can change it.',
    );
  }
}
