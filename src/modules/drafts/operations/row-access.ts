import type { RevertibleFamily } from '../../../core/log/change.ts';
import { type JsonObject } from '../../../core/values/json/json.ts';
import { hasScope } from '../../../core/values/key.ts';
import type { Reads } from '../../../core/log/store.ts';
import { accessTo } from '../../tables/rows/access.ts';
import { requireWritableRows, rowFamily, tableHaving } from '../../tables/rows/row-family.ts';
import { ruleFamily } from '../../rules/operations/rule-family.ts';
import { tableFamily } from '../../tables/operations/table-family.ts';
import { hookFamily } from '../../webhooks/operations/hook-family.ts';
import { readScopes, type Folding } from '../../../core/operations/records/revert.ts';
import { shownTo, type Reader } from '../../../core/operations/records/shown.ts';

/** The families whose records drafts change, tables before their rows. */
export const draftedFamilies: Readonly<Record<RevertibleFamily, Folding>> = {
  table: tableFamily,
  userinterface: ruleFamily,
  webhook: hookFamily,
  record: rowFamily,
};

/** A record as a report names it. */
interface NamedRecord {
  readonly family: RevertibleFamily;
  readonly id: string;
}

/** Whether a caller may read a record: of a row, its table says so, as for record.read. */
export function mayReadRecord(reads: Reads, caller: Reader, { family, id }: NamedRecord): boolean {
  if (family !== 'record') return hasScope(caller, readScopes[family]);
  const stored = tableHaving(reads, id);
  if (stored === undefined) return hasScope(caller, 'admin');
  return accessTo(stored.table, caller, undefined).read !== 'none';
}

/**
 * Makes the function that shows versions of a record in reports about drafts; `states` are those
 * that the report shows as current. A record that the reader may not read has no fields.
 */
export function versionsShown(
  [reads, ...others]: readonly [Reads, ...Reads[]],
  reader: Reader,
  named: NamedRecord,
): (version: JsonObject | undefined) => JsonObject {
  if (!mayReadRecord(reads, reader, named)) return () => ({});
  const show = shownTo(draftedFamilies[named.family], [reads, ...others], reader);
  return (version) => (version === undefined ? {} : show(named.id, version));
}

/**
 * Throws `forbidden` for rows that a caller may not write; where a table asks for `design`,
 * `publish` is enough, as it is for page rules. `what` begins the message, such as "publishing".
 */
export function requirePublishedRows(
  reads: Reads,
  rows: Parameters<typeof requireWritableRows>[1],
  { caller, what }: { readonly caller: Reader; readonly what: string },
): void {
  const isPublisher = hasScope(caller, 'publish');
  const writer = isPublisher ? { scopes: new Set([...caller.scopes, 'design'] as const) } : caller;
  const says = `The draft changes rows of a table: ${what}`;
  requireWritableRows(reads, rows, { writer, says, field: 'draft' });
}
