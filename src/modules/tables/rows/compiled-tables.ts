import { isJsonObject, type JsonObject } from '../../../core/values/json/json.ts';
import type { StoredTable } from '../table.ts';
import type { Reads } from '../../../core/log/store.ts';
import { compileTable, type CompiledTable } from '../compiled-table.ts';
import { writeOnlyFields } from '../schema-check.ts';

/** A table as the operations on its rows need it. */
export interface RowTable extends CompiledTable {
  readonly stored: StoredTable;
  /**
   * Fields that no operation shows: those that are writeOnly, and those that were so and that the
   * schema no longer has.
   */
  readonly hidden: ReadonlySet<string>;
}

const compiled = new WeakMap<StoredTable, RowTable>();

/**
 * A table with its compiled schema; it is compiled once for each version of the definition, because
 * the store parses each version once.
 */
export function rowTable(reads: Pick<Reads, 'rows'>, stored: StoredTable): RowTable {
  const known = compiled.get(stored);
  if (known !== undefined) return known;
  const table = compileTable(stored.table);
  const made: RowTable = { ...table, stored, hidden: hiddenFields(reads, table, stored) };
  compiled.set(stored, made);
  return made;
}

function hiddenFields(
  reads: Pick<Reads, 'rows'>,
  { fields }: CompiledTable,
  { table }: StoredTable,
): ReadonlySet<string> {
  const hidden = new Set([...fields.values()].flatMap((one) => (one.isWriteOnly ? one.name : [])));
  // An invalidated change counts as well: rows may have had values by it.
  for (const { data } of reads.rows('table', table.id)) {
    if (!isJsonObject(data.schema)) continue;
    for (const name of writeOnlyFields(data.schema)) if (!fields.has(name)) hidden.add(name);
  }
  return hidden;
}

/** Fields without the hidden ones, also in `_unknowns_`. */
export function withoutHidden(hidden: ReadonlySet<string>, fields: JsonObject): JsonObject {
  if (hidden.size === 0) return fields;
  const { _unknowns_: unknowns, ...others } = fields;
  const shown = openFields(hidden, others);
  if (unknowns === undefined) return shown;
  if (!isJsonObject(unknowns)) return { ...shown, _unknowns_: unknowns };
  const waiting = openFields(hidden, unknowns);
  return Object.keys(waiting).length === 0 ? shown : { ...shown, _unknowns_: waiting };
}

function openFields(hidden: ReadonlySet<string>, fields: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !hidden.has(name)));
}
