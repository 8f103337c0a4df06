import { knownEventTypes } from './event-types.ts';
import { isEventType } from './event.ts';
import type { Problem, ProblemReason } from './failure.ts';
import { isJsonObject, sameJson, type Json, type JsonObject } from './json.ts';
import { nearestName } from './nearest.ts';

/** A change of a row that raises an event (docs/design/webhooks.md#events-of-tables). */
export interface TableEvent {
  readonly type: string;
  /** The property whose value decides. */
  readonly field: string;
  /** When the value crosses a level, falls below it, rises above it … */
  readonly crosses?: number;
  readonly below?: number;
  readonly above?: number;
  /** … or becomes a value; without any of them, at each change. */
  readonly becomes?: string | number | boolean;
}

/** The fields of a row, before or after a change. */
type RowFields = Readonly<Record<string, Json | undefined>>;

/** Conditions of one table. */
const eventConditionsMax = 64;

const levels = ['crosses', 'below', 'above'] as const;
const words = [...levels, 'becomes'] as const;

/** The result of reading `events` of a table, by event type. */
interface EventsReading {
  /** The valid members, as objects or lists of them. */
  readonly value: JsonObject;
  /**
   * The invalid members as they were sent, or the whole value if it has no members; undefined if
   * all are valid.
   */
  readonly waiting: Json | undefined;
  readonly problems: readonly Problem[];
}

/**
 * Reads `events` of a table: `{type: {field, crosses | below | above | becomes}}`, where a type may
 * have a list of them, or the same as text: `type: field [word value], …`.
 */
export function readTableEvents(sent: Json, schema: JsonObject | undefined): EventsReading {
  const properties = isJsonObject(schema?.properties) ? schema.properties : {};
  const members = typeof sent === 'string' ? eventsFromText(sent, properties) : sent;
  if (!isJsonObject(members)) {
    const message =
      'events has to be an object such as {"stock.level_changed": {"field": "stock", ' +
      '"crosses": 0}}, or a text such as stock.level_changed: stock crosses 0.';
    return {
      value: {},
      waiting: sent,
      problems: [{ field: 'events', reason: 'wrong_type', message }],
    };
  }
  const value = new Map<string, Json>();
  const waiting = new Map<string, Json>();
  const problems: Problem[] = [];
  let count = 0;
  for (const [type, member] of Object.entries(members)) {
    const conditions = Array.isArray(member) ? (member as readonly Json[]) : [member];
    count += conditions.length;
    const found =
      typeProblem(type, conditions, count) ??
      conditions.map((one) => conditionProblem(one, properties)).find((one) => one !== undefined);
    if (found === undefined) value.set(type, member);
    else {
      waiting.set(type, member);
      const field = `events.${type}`;
      problems.push({ ...found, field, message: `${field}: ${found.message}` });
    }
  }
  return {
    value: Object.fromEntries(value),
    waiting: waiting.size > 0 ? Object.fromEntries(waiting) : undefined,
    problems,
  };
}

/** The events of a table with valid `events`; none that would show a value that is writeOnly. */
export function tableEvents(
  events: JsonObject | undefined,
  schema: JsonObject | undefined,
): readonly TableEvent[] {
  const properties = isJsonObject(schema?.properties) ? schema.properties : {};
  return Object.entries(events ?? {}).flatMap(([type, member]) => {
    const conditions = (Array.isArray(member) ? member : [member]) as unknown as TableEvent[];
    return conditions
      .filter(({ field }) => !isWriteOnly(properties[field]))
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
  if (becomes !== undefined) return value === becomes;
  const [from, to] = [numberOf(former), numberOf(value)];
  if (crosses !== undefined) {
    return from !== undefined && to !== undefined && from > crosses !== to > crosses;
  }
  if (below !== undefined) {
    return to !== undefined && to < below && !(from !== undefined && from < below);
  }
  if (above !== undefined) {
    return to !== undefined && to > above && !(from !== undefined && from > above);
  }
  return true;
}

/** A change of a row: `after` is the row with its id and table. */
interface RowChanged {
  readonly before: RowFields | undefined;
  readonly after: RowFields & { readonly id: string; readonly table: string };
  /** The property that identifies a row. */
  readonly key: string | undefined;
}

/**
 * The data of an event: as the known type describes it, with the members `table` and `id` by which
 * receivers read the row; for other types, with `field`, `value` and `previous`.
 */
export function tableEventData(
  { type, field }: TableEvent,
  { before, after, key }: RowChanged,
): JsonObject {
  const { table, id } = after;
  const keyValue = key === undefined ? undefined : valueOf(after, key);
  const [previous, value = null] = [valueOf(before, field), valueOf(after, field)];
  const isName = typeof keyValue === 'string' || typeof keyValue === 'number';
  const name = isName ? String(keyValue) : id;
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

type Mistake = Omit<Problem, 'field'>;

function typeProblem(
  type: string,
  conditions: readonly Json[],
  count: number,
): Mistake | undefined {
  if (!isEventType(type)) {
    const message = 'An event type is dotted, in lower case, such as stock.level_changed.';
    return { reason: 'bad_format', message };
  }
  if (knownEventTypes.some((known) => known.type === type && known.own)) {
    return { reason: 'bad_format', message: 'Waymark raises this event itself. Use another type.' };
  }
  if (conditions.length > 0 && count <= eventConditionsMax) return undefined;
  const message = `A table has at most ${eventConditionsMax} conditions, and a type at least one.`;
  return { reason: 'out_of_range', message };
}

function conditionProblem(condition: Json, properties: JsonObject): Mistake | undefined {
  if (!isJsonObject(condition) || typeof condition.field !== 'string') {
    const message = 'A condition is an object with a field, such as {"field": "stock"}.';
    return { reason: 'wrong_type', message };
  }
  const { field } = condition;
  const property = Object.hasOwn(properties, field) ? properties[field] : undefined;
  if (property === undefined) {
    return named('bad_format', `The schema has no property ${field}`, field, properties);
  }
  if (isWriteOnly(property)) {
    const message = `${field} is writeOnly: no event may show its value.`;
    return { reason: 'bad_format', message };
  }
  const used = Object.keys(condition).filter((name) => name !== 'field');
  const unknown = used.find((name) => !words.some((word) => word === name));
  if (unknown !== undefined) {
    const all = Object.fromEntries(words.map((word) => [word, true]));
    return named('unknown_field', `There is no condition ${unknown}`, unknown, all);
  }
  if (used.length > 1) {
    return { reason: 'bad_format', message: `Use one of ${used.join(' and ')}.` };
  }
  const [word] = used;
  return word === undefined ? undefined : valueProblem(field, word, condition[word], property);
}

/** Whether a property, or a part of it, is writeOnly. */
function isWriteOnly(property: Json | undefined): boolean {
  if (Array.isArray(property)) return property.some((one: Json) => isWriteOnly(one));
  if (!isJsonObject(property)) return false;
  return property.writeOnly === true || Object.values(property).some(isWriteOnly);
}

function valueProblem(
  field: string,
  word: string,
  value: Json | undefined,
  property: Json,
): Mistake | undefined {
  if (word === 'becomes') {
    if (['string', 'number', 'boolean'].includes(typeof value)) return undefined;
    return { reason: 'wrong_type', message: 'becomes has to be a text, a number, true or false.' };
  }
  if (typeof value !== 'number') {
    return { reason: 'wrong_type', message: `${word} has to be a number.` };
  }
  const type = isJsonObject(property) ? property.type : undefined;
  const types = Array.isArray(type) ? (type as readonly Json[]) : [type];
  if (types.some((one) => ['number', 'integer', 'string', undefined].includes(one as string))) {
    return undefined;
  }
  return { reason: 'bad_format', message: `${field} has no numbers, which ${word} compares.` };
}

function named(reason: ProblemReason, what: string, name: string, known: JsonObject): Mistake {
  const suggestion = nearestName(name, Object.keys(known));
  return { reason, message: `${what}.`, ...(suggestion !== undefined && { suggestion }) };
}

/** Undefined for a field that is absent or null. */
function valueOf(row: RowFields | undefined, field: string): Json | undefined {
  return row !== undefined && Object.hasOwn(row, field) ? (row[field] ?? undefined) : undefined;
}

/** A decimal number may be a text, which keeps its precision. */
function numberOf(value: Json | undefined): number | undefined {
  if (typeof value === 'number') return value;
  const isDecimal = typeof value === 'string' && /^-?\d{1,40}(?:\.\d{1,40})?$/.test(value);
  return isDecimal ? Number(value) : undefined;
}

const textForm = /^([^:\s]+)\s*:\s*(\S+)(?:\s+(\S+)\s+(\S.*))?$/;

/** `type: field [word value], …` as an object; the text itself if it has another form. */
function eventsFromText(text: string, properties: JsonObject): Json {
  const events = new Map<string, readonly JsonObject[]>();
  for (const part of text.split(',')) {
    const [match, type = '', field = '', word, value = ''] = textForm.exec(part.trim()) ?? [];
    if (match === undefined) return text;
    const condition =
      word === undefined ? {} : { [word]: valueFromText(value, word, properties[field]) };
    events.set(type, [...(events.get(type) ?? []), { field, ...condition }]);
  }
  const members = [...events].map(([type, conditions]) => {
    const [first] = conditions;
    return [type, conditions.length === 1 && first !== undefined ? first : conditions] as const;
  });
  return Object.fromEntries(members);
}

/** A level is a number; what a property becomes has the type that the schema gives it. */
function valueFromText(text: string, word: string, property: Json | undefined): Json {
  const number = numberOf(text);
  if (word !== 'becomes') return number ?? text;
  const type = isJsonObject(property) ? property.type : undefined;
  if (type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true';
  return type === 'number' || type === 'integer' ? (number ?? text) : text;
}
