import { formValue } from '../../../core/operations/records/form-value.ts';
import type { IndexRange } from '../log/reads.ts';
import { Failure } from '../../../core/values/failure.ts';
import {
  type Json,
  type JsonObject,
  isJsonObject,
  isNested,
} from '../../../core/values/json/json.ts';
import type { TableField } from '../compiled-table.ts';
import {
  type Row,
  type Scalar,
  compareScalars,
  comparedValue,
  rankOf,
  sameScalar,
} from '../row.ts';
import { isInstant, tableIndexes } from '../table.ts';
import type { RowTable } from './compiled-tables.ts';
import { shownValueCharactersMax } from './limits.ts';

/** Values of one `in`. */
const inValuesMax = 100;

/** Fields of one `where`. */
const whereFieldsMax = 16;

/** A condition on one field: ranges of its index, of which a value has to be in one. */
export interface RowCondition {
  readonly field: string;
  readonly ranges: readonly IndexRange[];
  readonly matches: (row: Row) => boolean;
}

/** The operators of a condition. */
const operators = ['=', '<', '<=', '>', '>=', 'in', 'prefix'] as const;

/**
 * Parses `where` of a list: a value by field, or operators with values. Throws `invalid` for a
 * field without index, with the line that declares it.
 */
export function parseWhere(where: JsonObject, table: RowTable): readonly RowCondition[] {
  const entries = Object.entries(where);
  if (entries.length > whereFieldsMax) {
    throw new Failure('invalid', `where names more than ${whereFieldsMax} fields.`, {
      field: 'where',
    });
  }
  return entries.map(([name, given]) => {
    const field = indexedField(name, table, 'where');
    const asInstant = isInstant(table.definition, name);
    return conditionOn(field, isJsonObject(given) ? given : { '=': given }, asInstant);
  });
}

/** A field that lists may filter and sort by. Throws `invalid` for another one. */
export function indexedField(name: string, table: RowTable, by: 'where' | 'sort'): TableField {
  const { definition, fields, hidden } = table;
  const found = fields.get(name);
  // Report a field that no caller may read as unknown.
  if (found === undefined || hidden.has(name)) throw unknownField(name, table, by);
  const indexes = tableIndexes(definition);
  const indexed = [...(indexes.key === undefined ? [] : [indexes.key]), ...indexes.fields];
  if (indexed.includes(name)) return found;
  const line = `index = ${[...indexes.fields, name].join(', ')}`;
  throw new Failure(
    'invalid',
    `${definition.name} has no index on ${name}: add the line \`${line}\` to ` +
      `[table.${definition.name}], or ${name} to index of the table.`,
    { field: by === 'where' ? `where.${name}` : 'sort' },
  );
}

/** The failure for a field that a table does not have, or that no caller may read. */
export function unknownField(
  name: string,
  { definition, fields, hidden }: Pick<RowTable, 'definition' | 'fields' | 'hidden'>,
  by: 'where' | 'sort',
): Failure {
  const known = [...fields.values()].filter((one) => !hidden.has(one.name));
  const names = known.map((one) => one.name).join(', ');
  const shown = JSON.stringify(name.slice(0, shownValueCharactersMax));
  return new Failure(
    'invalid',
    `${by} names ${shown}, which is no field of ${definition.name}. Its fields are ${names}.`,
    { field: by === 'where' ? `where.${name.slice(0, shownValueCharactersMax)}` : 'sort' },
  );
}

function conditionOn(field: TableField, given: JsonObject, asInstant: boolean): RowCondition {
  const { name } = field;
  const unknown = Object.keys(given).find((one) => !(operators as readonly string[]).includes(one));
  if (unknown !== undefined) {
    throw new Failure(
      'invalid',
      `${name} takes ${operators.join(', ')}, not ${unknown.slice(0, shownValueCharactersMax)}.`,
      {
        field: `where.${name}.${unknown}`.slice(0, 200),
      },
    );
  }
  if (Object.keys(given).length === 0) {
    throw new Failure('invalid', `where.${name} has no condition.`, { field: `where.${name}` });
  }
  const value = (operator: string): Scalar | undefined => {
    const one = given[operator];
    return one === undefined ? undefined : scalarFor(field, one, { operator, asInstant });
  };
  const values = valuesOf(field, given, { equal: value('='), asInstant });
  const prefix = prefixOf(field, given.prefix);
  const bounds = {
    over: value('>'),
    atLeast: value('>='),
    under: value('<'),
    atMost: value('<='),
  };
  const { over, atLeast, under, atMost } = bounds;
  const low = over ?? atLeast;
  const high = under ?? atMost;
  const range: IndexRange = {
    field: name,
    ...(low !== undefined && { from: { value: low, inclusive: over === undefined } }),
    ...(high !== undefined && { to: { value: high, inclusive: under === undefined } }),
    ...(prefix !== undefined && { prefix }),
  };
  const isWithin = (one: Scalar): boolean =>
    (values === undefined || values.some((value) => sameScalar(value, one))) &&
    (prefix === undefined || (typeof one === 'string' && one.startsWith(prefix))) &&
    Object.entries(bounds).every(([bound, limit]) => {
      return limit === undefined || isBeyond(one, bound, limit);
    });
  return {
    field: name,
    ranges: values?.map((one) => equal(name, one)) ?? [range],
    matches: (row) => isWithin(comparedValue(row[name], asInstant)),
  };
}

function equal(field: string, value: Scalar): IndexRange {
  return { field, from: { value, inclusive: true }, to: { value, inclusive: true } };
}

/** A value is compared with values of its own type only. */
function isBeyond(one: Scalar, bound: string, limit: Scalar): boolean {
  const isBoolean = typeof one === 'boolean' && typeof limit === 'boolean';
  if (one === null || (rankOf(one) !== rankOf(limit) && !isBoolean)) return false;
  const order = compareScalars(one, limit);
  if (bound === 'over') return order > 0;
  if (bound === 'atLeast') return order >= 0;
  return bound === 'under' ? order < 0 : order <= 0;
}

function valuesOf(
  field: TableField,
  given: JsonObject,
  { equal, asInstant }: { readonly equal: Scalar | undefined; readonly asInstant: boolean },
): readonly Scalar[] | undefined {
  const { in: listed } = given;
  if (listed === undefined) return equal === undefined ? undefined : [equal];
  const items = typeof listed === 'string' ? listed.split(',') : listed;
  if (!Array.isArray(items) || items.length === 0 || items.length > inValuesMax) {
    throw new Failure('invalid', `in takes a list of 1 to ${inValuesMax} values.`, {
      field: `where.${field.name}.in`,
    });
  }
  const values = (items as readonly Json[])
    .map((one) => scalarFor(field, one, { operator: 'in', asInstant }))
    .toSorted(compareScalars);
  return values.filter((one, at) => {
    const before = values[at - 1];
    if (before !== undefined && sameScalar(before, one)) return false;
    return equal === undefined || sameScalar(one, equal);
  });
}

function prefixOf({ name }: TableField, prefix: Json | undefined): string | undefined {
  if (prefix === undefined) return undefined;
  if (typeof prefix === 'string' && prefix !== '') return prefix;
  throw new Failure('invalid', `prefix of ${name} has to be a text of 1 character or more.`, {
    field: `where.${name}.prefix`,
  });
}

function scalarFor(
  field: TableField,
  value: Json,
  { operator, asInstant }: { readonly operator: string; readonly asInstant: boolean },
): Scalar {
  const type = [...(field.types ?? [])].filter((one) => one !== 'array');
  const one = formValue(value, { type });
  if (!isNested(one)) return comparedValue(one, asInstant);
  const message = `${operator} of ${field.name} takes a text, a number, true, false or null.`;
  throw new Failure('invalid', message, { field: `where.${field.name}` });
}
