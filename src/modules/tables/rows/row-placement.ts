import { formValue } from '../../../core/operations/records/form-value.ts';
import type { Reads } from '../../../core/log/store.ts';
import { unknownField } from '../../../core/operations/problems.ts';
import {
  type FieldValues,
  type FieldWrite,
  type Named,
  type PlacedField,
  fieldsOf,
  placeRecord,
  requireSize,
} from '../../../core/operations/records/placement.ts';
import { Failure, type Problem } from '../../../core/values/failure.ts';
import { type Json, type JsonObject, objectOf } from '../../../core/values/json/json.ts';
import { MIB } from '../../../core/values/units.ts';
import type { CompiledTable, TableField } from '../compiled-table.ts';
import { type Row, type StoredRow, scalarOf } from '../row.ts';
import { storedTables } from '../log/family.ts';

/** JSON bytes of a row. */
const rowBytesMax = 4 * MIB;

/** Names of fields that only the server writes. */
const serverFields = ['table'];

/**
 * Places the fields of a row by the schema of its table (docs/design/records.md#values-of-a-row):
 * a value that is not valid for its field waits in `_unknowns_`, and so does an unknown field.
 * Returns the data of the change. Throws `invalid` for a row without a required field, or with
 * fields that contradict each other, `too_large` past a limit.
 */
export function placeRowFields(write: FieldWrite<Row>, table: CompiledTable): JsonObject {
  const data = placeRecord(write, (before) => ({
    names:
      before.size === 0
        ? table.fields
        : new Set([...table.fields.keys(), ...formerFields(before, table)]),
    placeField: (name, values) => placeField(table.fields.get(name), values),
    complete(fields, unknowns) {
      requireFields(table, fields, unknowns);
      requireAgreement(table, fields);
      requireRoom(fields, unknowns);
    },
  }));
  return write.current === undefined ? { table: table.definition.name, ...data } : data;
}

/** Fields of a row that the schema no longer has: their values wait in `_unknowns_`. */
function formerFields(before: Named, { fields }: CompiledTable): readonly string[] {
  return [...before.keys()].filter((name) => !fields.has(name) && !serverFields.includes(name));
}

/** A field that the schema does not have gets no value. */
function placeField(
  definition: TableField | undefined,
  { old, sent, waiting }: FieldValues,
): PlacedField {
  const next = sent === undefined ? waiting : sent;
  if (next === null) return {};
  if (definition === undefined) {
    const unknown = next ?? old;
    return unknown === undefined ? {} : { unknown };
  }
  if (next !== undefined && definition.mistake(next) === undefined) return { field: next };
  if (old !== undefined && definition.mistake(old) === undefined) {
    return next === undefined ? { field: old } : { field: old, unknown: next };
  }
  const unknown = next ?? old;
  return unknown === undefined ? {} : { unknown };
}

function requireFields(table: CompiledTable, fields: Named, unknowns: Named): void {
  const missing = table.required.find((name) => !fields.has(name));
  if (missing === undefined) return;
  const waiting = unknowns.get(missing);
  const mistake = waiting === undefined ? undefined : table.fields.get(missing)?.mistake(waiting);
  const message =
    mistake === undefined
      ? `${missing} is missing: every row of ${table.definition.name} has it.`
      : `${mistake.message} Every row of ${table.definition.name} needs ${missing}.`;
  throw new Failure('invalid', message, { field: mistake?.field ?? missing });
}

/** Conditions on several fields cannot be met by leaving out one of them, so they refuse. */
function requireAgreement(table: CompiledTable, fields: Named): void {
  const hasOthers = serverFields.some((name) => fields.has(name));
  const row = hasOthers
    ? Object.fromEntries([...fields].filter(([name]) => !serverFields.includes(name)))
    : objectOf(fields);
  const mistake = table.rowMistake(row);
  if (mistake === undefined) return;
  const { field, message } = mistake;
  throw new Failure('invalid', message.trimStart(), field === '' ? {} : { field });
}

function requireRoom(fields: Named, unknowns: Named): void {
  try {
    requireSize('The row', { fields, unknowns }, rowBytesMax);
  } catch (error) {
    if (!(error instanceof Failure) || error.field !== undefined) throw error;
    const sizes = [...fields, ...unknowns].map(([name, value]) => {
      return { field: name, size: JSON.stringify(value).length };
    });
    const largest = sizes.toSorted((one, other) => other.size - one.size)[0]?.field ?? '';
    throw new Failure('too_large', error.message, { field: largest });
  }
}

/**
 * The fields of a form or query, where all values are texts, as the types of their fields have
 * them. An empty text is no value for a field that cannot have it: browsers send empty inputs too.
 */
export function rowFieldsFromText(sent: JsonObject, { fields }: CompiledTable): JsonObject {
  return Object.fromEntries(
    Object.entries(sent).map(([name, value]) => {
      const field = fields.get(name);
      return [name, field === undefined ? value : valueFromText(value, field)] as const;
    }),
  );
}

/**
 * A value of a form as one of a field: a text that the field takes stays one, and what is in a list
 * or an object follows its schema.
 */
export function valueFromText(
  value: Json,
  field: Pick<TableField, 'schema' | 'types' | 'mistake'>,
): Json {
  const { schema, types } = field;
  if (typeof value !== 'string') return formValue(value, schema);
  const isValid = field.mistake(value) === undefined;
  if (value === '') return isValid ? value : null;
  if (types === undefined || (types.has('string') && isValid)) return value;
  return formValue(value, { ...schema, type: [...types].filter((type) => type !== 'string') });
}

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
  reads: Pick<Reads, 'of'>,
  refersTo: string,
  value: Json,
): StoredRow | undefined {
  const target = reads.of(storedTables).table(refersTo)?.table;
  if (target === undefined) return undefined;
  const scalar = scalarOf(value);
  const byKey =
    target.key === undefined || scalar === null
      ? undefined
      : reads.of(storedTables).rowByKey(refersTo, scalar);
  if (byKey !== undefined || typeof value !== 'string') return byKey;
  const byId = reads.of(storedTables).row(value);
  return byId?.row.table === refersTo ? byId : undefined;
}
