import type { RevertibleFamily } from '../../../core/log/change.ts';
import { Failure } from '../../../core/values/failure.ts';
import { type JsonObject } from '../../../core/values/json/json.ts';
import { hasScope, type Caller, type Scope } from '../../../core/values/key.ts';
import type { Reads } from '../../../core/log/store.ts';
import { accessTo, scopesFor } from '../../tables/rows/access.ts';
import { rowTable, withoutHidden } from '../../tables/rows/compiled-tables.ts';
import { tableOfRow } from '../../tables/rows/row-family.ts';

/** The scopes that read the records of each family, with their history; of rows, see below. */
const readScopes: Readonly<Record<Exclude<RevertibleFamily, 'record'>, Scope>> = {
  userinterface: 'read',
  webhook: 'webhook',
  table: 'admin',
};

type Scoped = Pick<Caller, 'scopes'>;

/** A record as a report names it. */
interface NamedRecord {
  readonly family: RevertibleFamily;
  readonly id: string;
}

/** Whether a caller may read a record: of a row, its table says so, as for record.read. */
export function mayReadRecord(reads: Reads, caller: Scoped, { family, id }: NamedRecord): boolean {
  if (family !== 'record') return hasScope(caller, readScopes[family]);
  const stored = tableHaving(reads, tableOfRow(reads, id));
  if (stored === undefined) return hasScope(caller, 'admin');
  return accessTo(stored.table, caller, undefined).read !== 'none';
}

/** The fields of a version of a record that operations show: of a row, none that is write-only. */
export function openFields(
  reads: Reads,
  family: RevertibleFamily,
  fields: JsonObject | undefined,
): JsonObject | undefined {
  if (family !== 'record' || fields === undefined) return fields;
  const stored = tableHaving(reads, fields.table);
  return stored === undefined ? {} : withoutHidden(rowTable(reads, stored).hidden, fields);
}

/** A report without the fields of the records that its reader may not read. */
export function withoutUnread(reads: Reads, caller: Scoped, report: JsonObject): JsonObject {
  const shown = (entries: unknown): JsonObject[] =>
    (entries as readonly (JsonObject & NamedRecord)[]).map((entry) => {
      if (mayReadRecord(reads, caller, entry)) return entry;
      const { label: _label, ...others } = entry;
      return { ...others, fields: {} };
    });
  const { changes, conflicts } = report;
  if (changes === undefined || conflicts === undefined) return report;
  return { ...report, changes: shown(changes), conflicts: shown(conflicts) };
}

/** A row that a publication, or the undo of one, would insert or edit. */
interface WrittenRow {
  readonly id: string;
  readonly action: 'insert' | 'edit';
}

/**
 * Throws `forbidden` for rows that a caller may not write, as record.insert and record.edit would;
 * where a table asks for `design`, `publish` is enough, as it is for page rules. `what` begins the
 * message, such as "publishing".
 */
export function requireWritableRows(
  reads: Reads,
  rows: Iterable<WrittenRow>,
  { caller, what }: { readonly caller: Scoped; readonly what: string },
): void {
  const isPublisher = hasScope(caller, 'publish');
  const writer = isPublisher ? { scopes: new Set([...caller.scopes, 'design'] as const) } : caller;
  if (hasScope(writer, 'admin')) return;
  for (const { id, action } of rows) {
    const table = tableHaving(reads, tableOfRow(reads, id))?.table;
    if (table !== undefined && accessTo(table, writer, undefined)[action] === 'scope') continue;
    const [scope = 'admin'] = table === undefined ? [] : scopesFor(table, action);
    const message = `The draft changes rows of a table: ${what} needs the scope ${scope}.`;
    throw new Failure('forbidden', message, { field: 'draft' });
  }
}

function tableHaving(reads: Reads, name: unknown): ReturnType<Reads['table']> {
  return typeof name === 'string' ? reads.table(name) : undefined;
}
