import { knownEventTypes } from '../../core/log/events/event-types.ts';
import { isEventType } from '../../core/values/event-type.ts';
import {
  type ExactNumber,
  compareNumbers,
  isExactNumber,
  numberOf as parsedNumber,
} from '../../core/values/json/exact-number.ts';
import {
  type Json,
  type JsonObject,
  isJsonObject,
  isNumber,
  sameJson,
} from '../../core/values/json/json.ts';
import { type Scope, hasScope, isScope } from '../../core/values/key.ts';
import { nearestName } from '../../core/values/nearest.ts';
import type { TableField } from './compiled-table.ts';
import { writeOnlyFields } from './schema-check.ts';

/** Conditions of `events`. */
const eventConditionsMax = 64;

/** A change of a row that raises an event (docs/design/webhooks.md#events-of-tables). */
export interface TableEvent {
  readonly type: string;
  /** The property whose value raises the event. */
  readonly field: string;
  /** When the value crosses a level, falls below it, rises above it … */
  readonly crosses?: number | ExactNumber;
  readonly below?: number | ExactNumber;
  readonly above?: number | ExactNumber;
  /** … or becomes a value; without any of them, at each change. */
  readonly becomes?: string | number | ExactNumber | boolean;
}

/** A field of the table, as far as conditions need it. */
type EventField = Pick<TableField, 'name' | 'types' | 'isWriteOnly'>;

/** The fields of the table by name. */
type EventFields = ReadonlyMap<string, EventField>;

/** The fields of a row, before or after a change. */
type RowFields = Readonly<Record<string, Json | undefined>>;

/** The words of conditions. */
const words = ['crosses', 'below', 'above', 'becomes'] as const;

/**
 * Parses `events` of a table: `{type: {field, crosses | below | above | becomes}}`, where a type
 * may have a list of them, or the same as text: `type: field [word value], …`. Returns the object,
 * or what is wrong, in sentences.
 */
export function parseTableEvents(
  given: Json,
  fields: EventFields,
): { readonly events: JsonObject } | { readonly mistakes: readonly string[] } {
  const events = typeof given === 'string' ? eventsFromText(given, fields) : given;
  if (!isJsonObject(events)) {
    const message =
      'events has to be an object such as {"stock.level_changed": {"field": "stock", ' +
      '"crosses": 0}}, or a text such as stock.level_changed: stock crosses 0.';
    return { mistakes: [message] };
  }
  const mistakes: string[] = [];
  let count = 0;
  for (const [type, member] of Object.entries(events)) {
    const conditions = Array.isArray(member) ? (member as readonly Json[]) : [member];
    count += conditions.length;
    const mistake =
      typeMistake(type, conditions, count) ??
      conditions.map((one) => conditionMistake(one, fields)).find((one) => one !== undefined);
    if (mistake !== undefined) mistakes.push(`events, ${type}: ${mistake}`);
  }
  return mistakes.length > 0 ? { mistakes } : { events };
}

/** The events of a table with valid `events`; none that would show a value that is writeOnly. */
export function tableEvents(
  events: JsonObject | undefined,
  schema: JsonObject | undefined,
): readonly TableEvent[] {
  const hidden = events === undefined ? [] : writeOnlyFields(schema ?? {});
  return Object.entries(events ?? {}).flatMap(([type, member]) => {
    const conditions = (Array.isArray(member) ? member : [member]) as unknown as TableEvent[];
    return conditions
      .filter(({ field }) => !hidden.includes(field))
      .map((one) => ({ ...one, type }));
  });
}

/**
 * Whether a change of a row raises an event. `before` is undefined for an inserted row, whose
 * values become what they are; `after` for one that no longer exists, which raises none.
 */
export function raisesEvent(
  { field, crosses, below, above, becomes }: TableEvent,
  before: RowFields | undefined,
  after: RowFields | undefined,
): boolean {
  const [former, value] = [valueOf(before, field), valueOf(after, field)];
  if (value === undefined || sameJson(former, value)) return false;
  if (becomes !== undefined) return sameJson(value, becomes);
  const [from, to] = [numberOf(former), numberOf(value)];
  if (crosses !== undefined) {
    return from !== undefined && to !== undefined && isOver(from, crosses) !== isOver(to, crosses);
  }
  if (below !== undefined) {
    return to !== undefined && isOver(below, to) && !(from !== undefined && isOver(below, from));
  }
  if (above !== undefined) {
    return to !== undefined && isOver(to, above) && !(from !== undefined && isOver(from, above));
  }
  return true;
}

function isOver(one: number | ExactNumber, other: number | ExactNumber): boolean {
  return compareNumbers(one, other) > 0;
}

/** A change of a row: `after` is the row with its id and table. */
interface RowChanged {
  readonly before: RowFields | undefined;
  readonly after: RowFields & { readonly id: string; readonly table: string };
  /** The property that identifies a row. */
  readonly key: string | undefined;
  /** Whether readers of events may read the rows: eventsShowValues. */
  readonly showsValues: boolean;
}

/**
 * Whether the scope `verify`, which reads events, reads the rows of a table with this `read` as
 * well: the scopes that it names replace `record.read`.
 */
export function eventsShowValues(read: readonly string[] = []): boolean {
  const named = read.filter(isScope);
  const reader = { scopes: new Set<Scope>(['verify']) };
  return named.length === 0 || named.some((scope) => hasScope(reader, scope));
}

/**
 * The data of an event: as the known type describes it, with the members `table` and `id` by which
 * receivers read the row; for other types, with `field`, `value` and `previous`. If those who read
 * events may not read the row, it has only `table`, `id` and `field`.
 */
export function tableEventData(
  { type, field }: TableEvent,
  { before, after, key, showsValues }: RowChanged,
): JsonObject {
  const { table, id } = after;
  if (!showsValues) return { table, id, field };
  const keyValue = key === undefined ? undefined : valueOf(after, key);
  const [previous, value = null] = [valueOf(before, field), valueOf(after, field)];
  const isName = typeof keyValue === 'string' || isNumber(keyValue);
  const name = isName ? textOf(keyValue) : id;
  if (type === 'stock.level_changed') {
    const [level, former] = [numberOf(value) ?? value, numberOf(previous)];
    const known = { product: name, level, ...(former !== undefined && { previous: former }) };
    return { ...known, table, id };
  }
  const was = previous === undefined ? {} : { previous };
  if (type === 'account.balance_changed')
    return { account: name, balance: value, ...was, table, id };
  return { table, id, ...(keyValue !== undefined && { key: keyValue }), field, value, ...was };
}

function typeMistake(type: string, conditions: readonly Json[], count: number): string | undefined {
  if (!isEventType(type)) {
    return 'an event type is dotted, in lower case, such as stock.level_changed.';
  }
  if (knownEventTypes.some((known) => known.type === type && known.own)) {
    return 'Waymark raises this event itself. Use another type.';
  }
  if (conditions.length > 0 && count <= eventConditionsMax) return undefined;
  return `a table has at most ${eventConditionsMax} conditions, and a type at least one.`;
}

function conditionMistake(condition: Json, fields: EventFields): string | undefined {
  if (!isJsonObject(condition) || typeof condition.field !== 'string') {
    return 'a condition is an object with a field, such as {"field": "stock"}.';
  }
  const { field } = condition;
  const found = fields.get(field);
  if (found === undefined) {
    return `the schema has no property ${field}.${hint(field, [...fields.keys()])}`;
  }
  if (found.isWriteOnly) return `${field} is writeOnly: no event may show its value.`;
  const used = Object.keys(condition).filter((name) => name !== 'field');
  const unknown = used.find((name) => !words.some((word) => word === name));
  if (unknown !== undefined) return `there is no condition ${unknown}.${hint(unknown, words)}`;
  if (used.length > 1) return `use one of ${used.join(' and ')}.`;
  const [word] = used;
  return word === undefined ? undefined : valueMistake(found, word, condition[word]);
}

function valueMistake(
  { name, types }: EventField,
  word: string,
  value: Json | undefined,
): string | undefined {
  if (word === 'becomes') {
    const isScalar = isNumber(value) || ['string', 'boolean'].includes(typeof value);
    return isScalar ? undefined : 'becomes has to be a text, a number, true or false.';
  }
  if (!isNumber(value)) return `${word} has to be a number.`;
  const isComparable =
    types === undefined || ['number', 'integer', 'string'].some((type) => types.has(type));
  return isComparable ? undefined : `${name} has no numbers, which ${word} compares.`;
}

function hint(name: string, known: readonly string[]): string {
  const nearest = nearestName(name, known);
  return nearest === undefined ? '' : ` Did you mean ${nearest}?`;
}

/** Undefined for a field that is absent or null. */
function valueOf(row: RowFields | undefined, field: string): Json | undefined {
  return row !== undefined && Object.hasOwn(row, field) ? (row[field] ?? undefined) : undefined;
}

/** A decimal number may be a text, which keeps its precision. */
function numberOf(value: Json | undefined): number | ExactNumber | undefined {
  if (isNumber(value)) return value;
  const isDecimal = typeof value === 'string' && /^-?\d{1,40}(?:\.\d{1,40})?$/.test(value);
  return isDecimal ? parsedNumber(value) : undefined;
}

function textOf(value: string | number | ExactNumber): string {
  return isExactNumber(value) ? value.rawJSON : String(value);
}

const textForm = /^([^:\s]+)\s*:\s*(\S+)(?:\s+(\S+)\s+(\S.*))?$/;

/** `type: field [word value], …` as an object; the text itself if it has another form. */
function eventsFromText(text: string, fields: EventFields): Json {
  const events = new Map<string, readonly JsonObject[]>();
  for (const part of text.split(',')) {
    const [match, type = '', field = '', word, value = ''] = textForm.exec(part.trim()) ?? [];
    if (match === undefined) return text;
    const condition =
      word === undefined ? {} : { [word]: valueFromText(value, word, fields.get(field)) };
    events.set(type, [...(events.get(type) ?? []), { field, ...condition }]);
  }
  const members = [...events].map(([type, conditions]) => {
    const [first] = conditions;
    return [type, conditions.length === 1 && first !== undefined ? first : conditions] as const;
  });
  return Object.fromEntries(members);
}

/** A level is a number; what a property becomes has the type that the schema gives it. */
function valueFromText(text: string, word: string, field: EventField | undefined): Json {
  const number = numberOf(text);
  if (word !== 'becomes') return number ?? text;
  const types = field?.types;
  if (types?.has('string') !== false) return text;
  return text === 'true' || text === 'false' ? text === 'true' : (number ?? text);
}
