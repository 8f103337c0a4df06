import { parseDateTime } from './date-time.ts';
import { isJsonObject, type Json, type JsonObject } from './json.ts';
import { conditionValuesMax } from './limits.ts';
import { Networks } from './networks.ts';
import { isDeviceClass, type DeviceClass } from './visitor.ts';

/** The names of the conditions of a breadcrumb (contract §6). */
export const conditionNames = [
  'user',
  'role',
  'country',
  'lang',
  'device',
  'query',
  'ip',
  'after',
  'before',
  'percent',
] as const;

/** The name of a condition. */
export type ConditionName = (typeof conditionNames)[number];

/** A parameter of the query, and the values that will do; undefined for any. */
export interface WantedParameter {
  readonly name: string;
  readonly values: ReadonlySet<string> | undefined;
}

/** One condition of a breadcrumb, ready to be held against a visitor. */
export type Condition =
  | { readonly name: 'user'; readonly users: ReadonlySet<string>; readonly anyone: boolean }
  | { readonly name: 'role'; readonly roles: ReadonlySet<string> }
  /** Upper case. */
  | { readonly name: 'country'; readonly countries: ReadonlySet<string> }
  /** Lower case. */
  | { readonly name: 'lang'; readonly tags: readonly string[] }
  | { readonly name: 'device'; readonly classes: readonly DeviceClass[] }
  | { readonly name: 'query'; readonly parameters: readonly WantedParameter[] }
  | { readonly name: 'ip'; readonly networks: Networks }
  | { readonly name: 'after' | 'before'; readonly timeMs: number }
  /** The visitors from the `from`-th millionth on; past the last one it goes on with the first. */
  | { readonly name: 'percent'; readonly from: number; readonly share: number };

/** What a percentage is counted in. */
export const millionths = 1_000_000;
const millionthsPerCent = millionths / 100;

/**
 * Reads one condition as it is written in an `if` (contract §6); undefined for a name that is none,
 * and for a value that says nothing. A list may be one text alone.
 */
function parseCondition(name: string, value: Json): Condition | undefined {
  return Object.hasOwn(parsers, name) ? parsers[name as ConditionName](value) : undefined;
}

const parsers: Readonly<Record<ConditionName, (value: Json) => Condition | undefined>> = {
  user: (value) =>
    parseEach(value, anyText, (users) => ({
      name: 'user',
      users: new Set(users),
      anyone: users.includes('*'),
    })),
  role: (value) => parseEach(value, anyText, (roles) => ({ name: 'role', roles: new Set(roles) })),
  country: (value) =>
    parseEach(value, countryCode, (codes) => ({ name: 'country', countries: new Set(codes) })),
  lang: (value) => parseEach(value, languageTag, (tags) => ({ name: 'lang', tags })),
  device: (value) => parseEach(value, deviceClass, (classes) => ({ name: 'device', classes })),
  query: parseQuery,
  ip: (value) =>
    parseEach(value, anyText, (texts) => {
      const networks = Networks.parse(texts);
      return networks && { name: 'ip', networks };
    }),
  after: (value) => parseMoment('after', value),
  before: (value) => parseMoment('before', value),
  percent: (value) =>
    typeof value === 'number' && value >= 0 && value <= 100
      ? { name: 'percent', from: 0, share: Math.round(value * millionthsPerCent) }
      : undefined,
};

/** An ISO 3166-1 alpha-2 code in upper case, or one of its like: `XK`, `T1`; else undefined. */
export function countryCode(text: string): string | undefined {
  return /^[a-z][a-z0-9]$/i.test(text) ? text.toUpperCase() : undefined;
}

function anyText(text: string): string | undefined {
  return text === '' ? undefined : text;
}

function deviceClass(text: string): DeviceClass | undefined {
  return isDeviceClass(text) ? text : undefined;
}

/** A language tag (RFC 5646 §2.1) in lower case. */
function languageTag(text: string): string | undefined {
  return /^[a-z]{1,8}(?:-[a-z0-9]{1,8}){0,7}$/i.test(text) ? text.toLowerCase() : undefined;
}

/** A condition of a text or a list of texts, each of which has to be one that `parse` takes. */
function parseEach<T>(
  value: Json,
  parse: (text: string) => T | undefined,
  make: (values: readonly T[]) => Condition | undefined,
): Condition | undefined {
  const texts = typeof value === 'string' ? [value] : value;
  if (!Array.isArray(texts) || texts.length === 0 || texts.length > conditionValuesMax) {
    return undefined;
  }
  const values = (texts as readonly Json[]).map((text) =>
    typeof text === 'string' ? parse(text) : undefined,
  );
  return values.every((one) => one !== undefined) ? make(values) : undefined;
}

function parseQuery(value: Json): Condition | undefined {
  if (!isJsonObject(value)) return undefined;
  const entries = Object.entries(value);
  if (entries.length === 0 || entries.length > conditionValuesMax) return undefined;
  const parameters = entries.map(([name, wanted]) => parseParameter(name, wanted));
  return parameters.every((one) => one !== undefined) ? { name: 'query', parameters } : undefined;
}

function parseParameter(name: string, wanted: Json): WantedParameter | undefined {
  const texts = typeof wanted === 'string' ? [wanted] : wanted;
  if (!Array.isArray(texts) || texts.length === 0 || texts.length > conditionValuesMax) {
    return undefined;
  }
  if (!texts.every((text) => typeof text === 'string')) return undefined;
  return { name, values: texts.includes('*') ? undefined : new Set(texts) };
}

function parseMoment(name: 'after' | 'before', value: Json): Condition | undefined {
  const iso = parseMomentText(value);
  return iso === undefined ? undefined : { name, timeMs: Date.parse(iso) };
}

/** A date-time as ISO 8601 in UTC; a date alone is its midnight there. */
export function parseMomentText(value: Json): string | undefined {
  const isDate = typeof value === 'string' && /^\d{4}-\d\d-\d\d$/.test(value);
  return parseDateTime(isDate ? `${value}T00:00:00Z` : value);
}

/** The conditions of an `if`, and the names of those that say nothing. */
export function parseConditions(written: JsonObject): {
  readonly conditions: readonly Condition[];
  readonly unreadable: readonly string[];
} {
  const conditions: Condition[] = [];
  const unreadable: string[] = [];
  for (const [name, value] of Object.entries(written)) {
    const condition = parseCondition(name, value);
    if (condition === undefined) unreadable.push(name);
    else conditions.push(condition);
  }
  return { conditions, unreadable };
}
