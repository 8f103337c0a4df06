import type { Ajv2020 } from 'ajv/dist/2020.js';
import type { DataValidationCxt } from 'ajv/dist/types/index.js';
import {
  canonicalNumber,
  compareNumbers,
  decimalOf,
  isExactNumber,
  standInNumber,
  type ExactNumber,
} from '../../core/values/json/exact-number.ts';
import { isJsonObject, sameJson, type Json, type JsonObject } from '../../core/values/json/json.ts';

/**
 * JSON Schema for rows and schemas with numbers that no double holds. ajv knows doubles alone: it
 * gets others in their place, and keywords that look up the number itself.
 */
export interface ExactNumbers {
  /** A value for ajv: 1 or 0.5 stands for a number that no double holds. */
  standIn(value: Json): unknown;
}

/** Replaces the keywords of an ajv that compare values; returns what makes values for it. */
export function compareExactly(ajv: Ajv2020): ExactNumbers {
  let root: Json = null;
  let originals = new WeakMap<object, Json>();
  const original = (value: unknown, place: DataValidationCxt | undefined): Json => {
    if (typeof value === 'object' && value !== null) return originals.get(value) ?? (value as Json);
    const { parentData, parentDataProperty: name } = place ?? {};
    const parent: unknown = parentData;
    if (typeof parent !== 'object' || parent === null) return root;
    const fields = originals.get(parent) as JsonObject | undefined;
    return fields?.[String(name)] ?? (value as Json);
  };
  const standIn = (value: Json): unknown => {
    if (isExactNumber(value)) return standInNumber(value);
    if (typeof value !== 'object' || value === null) return value;
    const copy = Array.isArray(value)
      ? (value as readonly Json[]).map(standIn)
      : Object.fromEntries(Object.entries(value).map(([name, one]) => [name, standIn(one)]));
    originals.set(copy, value);
    return copy;
  };
  for (const [keyword, { type, accepts, error }] of Object.entries(keywords)) {
    ajv.removeKeyword(keyword);
    const validate = Object.assign(
      (limit: Json, value: unknown, _parent: unknown, place?: DataValidationCxt): boolean => {
        const isAccepted = accepts(original(value, place), limit);
        if (!isAccepted) Reflect.set(validate, 'errors', [{ keyword, ...error(limit) }]);
        return isAccepted;
      },
      { errors: [] },
    );
    ajv.addKeyword({ keyword, ...(type !== undefined && { type }), validate });
  }
  return {
    standIn(value) {
      [root, originals] = [value, new WeakMap()];
      return standIn(value);
    },
  };
}

/** A keyword that compares values. */
interface Comparison {
  /** The type of the values that it applies to; undefined for all. */
  readonly type?: 'number' | 'array';
  readonly accepts: (value: Json, limit: Json) => boolean;
  /** The error of ajv for a value that it does not accept. */
  readonly error: (limit: Json) => { readonly message: string; readonly params: JsonObject };
}

const limitedBy = (sign: string, accepts: (order: number) => boolean): Comparison => ({
  type: 'number',
  accepts: (value, limit) => accepts(compareNumbers(value as number, limit as number)),
  error: (limit) => ({ message: `must be ${sign} ${JSON.stringify(limit)}`, params: {} }),
});

const keywords: Readonly<Record<string, Comparison>> = {
  minimum: limitedBy('>=', (order) => order >= 0),
  maximum: limitedBy('<=', (order) => order <= 0),
  exclusiveMinimum: limitedBy('>', (order) => order > 0),
  exclusiveMaximum: limitedBy('<', (order) => order < 0),
  multipleOf: {
    type: 'number',
    accepts: (value, limit) => isMultiple(value as number, limit as number),
    error: (limit) => ({ message: `must be multiple of ${JSON.stringify(limit)}`, params: {} }),
  },
  enum: {
    accepts: (value, limit) => (limit as readonly Json[]).some((one) => sameJson(one, value)),
    error: (limit) => ({
      message: 'must be equal to one of the allowed values',
      params: { allowedValues: (limit as readonly Json[]).map(shown) },
    }),
  },
  uniqueItems: {
    type: 'array',
    accepts: (items, isUnique) => isUnique !== true || isUniqueList(items as readonly Json[]),
    error: () => ({ message: 'must not have duplicate items', params: {} }),
  },
  const: {
    accepts: sameJson,
    error: (limit) => ({ message: 'must be equal to constant', params: { allowedValue: limit } }),
  },
};

function shown(value: Json): Json {
  return isExactNumber(value) || isJsonObject(value) ? JSON.stringify(value) : value;
}

/** Whether no two items are equal. */
export function isUniqueList(items: readonly Json[]): boolean {
  return new Set(items.map(sortedJson)).size === items.length;
}

/** A text that equal values share. */
function sortedJson(value: Json): string {
  if (Array.isArray(value)) return `[${(value as readonly Json[]).map(sortedJson).join()}]`;
  if (isExactNumber(value)) return canonicalNumber(value);
  if (!isJsonObject(value)) return JSON.stringify(value);
  const members = Object.entries(value).map(([name, one]) => {
    return `${JSON.stringify(name)}:${sortedJson(one)}`;
  });
  return `{${members.toSorted().join()}}`;
}

/** Whether a number is a whole multiple of another one, in decimal. */
function isMultiple(value: number | ExactNumber, of: number | ExactNumber): boolean {
  const [one, other] = [value, of].map((number) => {
    const { digits, exponent } = decimalOf(isExactNumber(number) ? number.rawJSON : String(number));
    return { units: BigInt(digits === '' ? '0' : digits), power: exponent - digits.length };
  });
  if (one === undefined || other === undefined || other.units === 0n) return false;
  const scale = one.power - other.power;
  const [raised, divisor] = scale >= 0 ? [scale, 0] : [0, -scale];
  return (one.units * 10n ** BigInt(raised)) % (other.units * 10n ** BigInt(divisor)) === 0n;
}
