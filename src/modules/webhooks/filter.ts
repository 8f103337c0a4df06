import { compareNumbers } from '../../core/values/json/exact-number.ts';
import {
  isJsonObject,
  isNumber,
  sameJson,
  type Json,
  type JsonObject,
} from '../../core/values/json/json.ts';
import { instantText } from '../../core/values/time.ts';

/** Values that `in` may name. */
const inValuesMax = 100;
/** Characters of a text in a condition, with which the data of every event is compared. */
const conditionCharactersMax = 1_024;

/** A condition on a member of the data of an event. */
interface FilterOperator {
  /** A valid operand in words. */
  readonly takes: string;
  readonly isOperand: (operand: Json) => boolean;
  /** `value` is undefined for a member that the data does not have. */
  readonly holds: (value: Json | undefined, operand: Json) => boolean;
}

/** The conditions of a filter besides equality, by name. */
const operators: Readonly<Record<string, FilterOperator>> = {
  gt: orderOperator((order) => order > 0),
  gte: orderOperator((order) => order >= 0),
  lt: orderOperator((order) => order < 0),
  lte: orderOperator((order) => order <= 0),
  in: {
    takes: `a list of 1 to ${inValuesMax} values`,
    isOperand: (operand) =>
      Array.isArray(operand) && operand.length > 0 && operand.length <= inValuesMax,
    holds: (value, operand) => (operand as readonly Json[]).some((one) => sameJson(one, value)),
  },
  contains: {
    takes: `a text of 1 to ${conditionCharactersMax} characters, a number, true or false`,
    isOperand: (operand) => (isScalar(operand) && operand !== '') || typeof operand === 'boolean',
    holds(value, operand) {
      if (Array.isArray(value)) return value.some((one: Json) => sameJson(one, operand));
      return typeof value === 'string' && typeof operand === 'string' && value.includes(operand);
    },
  },
  not: {
    takes: 'a value, or a condition other than not',
    isOperand: (operand) =>
      !isJsonObject(operand) || !Object.hasOwn(operand, 'not') || !isCondition(operand),
    holds: (value, operand) => !isMatch(value, operand),
  },
};

/** The names of the conditions. */
const filterOperators: readonly string[] = Object.keys(operators);

/** The conditions that compare the order of values. */
export const orderOperators: readonly string[] = ['gt', 'gte', 'lt', 'lte'];

/**
 * Whether the data of an event has the values that a filter names
 * (docs/design/webhooks.md#filters).
 */
export function matchesFilter(data: JsonObject, filter: JsonObject): boolean {
  return Object.entries(filter).every(([name, expected]) =>
    isMatch(Object.hasOwn(data, name) ? data[name] : undefined, expected),
  );
}

/** A mistake in the value of a member of a filter. */
interface FilterMistake {
  /** The path within the filter. */
  readonly path: string;
  /** The reason `no_effect`: the value is compared as a whole. */
  readonly isWhole: boolean;
  readonly message: string;
}

/** What is wrong with the conditions of a filter. */
export function filterMistakes(filter: JsonObject): readonly FilterMistake[] {
  return Object.entries(filter).flatMap(([name, expected]) => mistakesOf(name, expected));
}

function mistakesOf(path: string, expected: Json): readonly FilterMistake[] {
  if (!isJsonObject(expected)) return [];
  const names = Object.keys(expected);
  const unknown = names.find((name) => !Object.hasOwn(operators, name));
  if (unknown !== undefined) {
    if (!names.some((name) => Object.hasOwn(operators, name))) return [];
    const known = filterOperators.join(', ');
    const message =
      `${path} is compared as a whole, because ${JSON.stringify(unknown)} is no condition. ` +
      `The conditions are ${known}.`;
    return [{ path: `${path}.${unknown}`, isWhole: true, message }];
  }
  return Object.entries(operators).flatMap(([name, { takes, isOperand }]) => {
    const operand = expected[name];
    if (operand === undefined || !Object.hasOwn(expected, name)) return [];
    const message = `${name} takes ${takes}.`;
    const below = name === 'not' ? mistakesOf(`${path}.not`, operand) : [];
    return isOperand(operand) ? below : [{ path: `${path}.${name}`, isWhole: false, message }];
  });
}

/**
 * Whether a value is a condition: an object whose members are all valid conditions. Any other value
 * is compared as a whole.
 */
function isCondition(expected: Json): expected is JsonObject {
  if (!isJsonObject(expected)) return false;
  const members = Object.entries(expected);
  return (
    members.length > 0 &&
    members.every(
      ([name, operand]) =>
        Object.hasOwn(operators, name) && operators[name]?.isOperand(operand) === true,
    )
  );
}

function isMatch(value: Json | undefined, expected: Json): boolean {
  if (!isCondition(expected)) return sameJson(expected, value);
  return Object.entries(expected).every(
    ([name, operand]) => operators[name]?.holds(value, operand) === true,
  );
}

function orderOperator(isInOrder: (order: number) => boolean): FilterOperator {
  return {
    takes: `a number, a date-time or another text of at most ${conditionCharactersMax} characters`,
    isOperand: isScalar,
    holds(value, operand) {
      const order = compare(value, operand);
      return order !== undefined && isInOrder(order);
    },
  };
}

/** A number, or a text that is not too long. */
function isScalar(operand: Json): boolean {
  if (typeof operand === 'string') return operand.length <= conditionCharactersMax;
  return isNumber(operand);
}

/**
 * The order of two values: numbers by their values, date-times as instants, other texts by code
 * points. Undefined for values of different types, and for a text beside a date-time.
 */
function compare(value: Json | undefined, limit: Json): number | undefined {
  if (isNumber(value) && isNumber(limit)) return compareNumbers(value, limit);
  if (typeof value !== 'string' || typeof limit !== 'string') return undefined;
  const instant = instantText(limit);
  // The rest of a longer text decides nothing.
  if (instant === undefined) return compareTexts(value.slice(0, limit.length + 1), limit);
  const at = instantText(value);
  return at === undefined ? undefined : compareTexts(at, instant);
}

function compareTexts(one: string, other: string): number {
  return Buffer.compare(Buffer.from(one), Buffer.from(other));
}
