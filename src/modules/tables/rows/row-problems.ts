import type { Problem } from '../../../core/values/failure.ts';
import type { Json } from '../../../core/values/json/json.ts';
import { scalarOf, type Row, type StoredRow } from '../row.ts';
import type { Reads } from '../../../core/log/store.ts';
import type { CompiledTable, TableField } from '../compiled-table.ts';
import { fieldsOf } from '../../../core/operations/records/placement.ts';
import { unknownField } from '../../../core/operations/problems.ts';

/**
 * The problems of the named fields of a row: values in its `_unknowns_`, and references to rows
 * that do not exist.
 */
export function rowProblems(
  row: Row,
  names: readonly string[],
  table: CompiledTable,
  findReferred: (field: TableField, value: Json) => StoredRow | undefined,
): readonly Problem[] {
  const { _unknowns_: unknowns = {} } = row;
  return names.flatMap((name): readonly Problem[] => {
    const field = table.fields.get(name);
    const waiting = Object.hasOwn(unknowns, name) ? unknowns[name] : undefined;
    if (field === undefined) {
      return waiting === undefined ? [] : [unknownField(name, name, [...table.fields.keys()])];
    }
    if (waiting !== undefined) {
      const mistake = field.mistake(waiting);
      if (mistake === undefined) return [];
      const message = `${mistake.message} The value waits in _unknowns_.`;
      return [{ ...mistake, message }];
    }
    const value = field.refersTo !== undefined && Object.hasOwn(row, name) ? row[name] : undefined;
    if (value === undefined || findReferred(field, value) !== undefined) return [];
    const message = `${name} names no row of ${field.refersTo}.`;
    return [{ field: name, reason: 'no_row', message }];
  });
}

/** The problems of fields that still have a value that the schema does not permit. */
export function invalidFields(row: Row, table: CompiledTable): readonly Problem[] {
  const { fields } = fieldsOf(row);
  return [...fields].flatMap(([name, value]): readonly Problem[] => {
    if (name === 'table') return [];
    const field = table.fields.get(name);
    if (field === undefined) return [unknownField(name, name, [...table.fields.keys()])];
    const mistake = field.mistake(value);
    return mistake === undefined ? [] : [mistake];
  });
}

/** The row that a reference names: by the key of its table, or else by its id. */
export function referredRow(
  reads: Pick<Reads, 'table' | 'row' | 'rowByKey'>,
  refersTo: string,
  value: Json,
): StoredRow | undefined {
  const target = reads.table(refersTo)?.table;
  if (target === undefined) return undefined;
  const scalar = scalarOf(value);
  const byKey =
    target.key === undefined || scalar === null ? undefined : reads.rowByKey(refersTo, scalar);
  if (byKey !== undefined || typeof value !== 'string') return byKey;
  const byId = reads.row(value);
  return byId?.row.table === refersTo ? byId : undefined;
}
