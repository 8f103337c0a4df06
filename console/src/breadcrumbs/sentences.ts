import type { Json } from '../api/api.ts';
import { texts } from '../texts.ts';
import {
  isConditionName,
  type ConditionDraft,
  type ConditionName,
  type OutcomeDraft,
} from './draft.ts';

const t = texts.breadcrumbs;

const regions = new Intl.DisplayNames('en', { type: 'region', fallback: 'code' });
const languages = new Intl.DisplayNames('en', { type: 'language', fallback: 'code' });
const either = new Intl.ListFormat('en', { type: 'disjunction' });
const day = new Intl.DateTimeFormat('en-GB', { dateStyle: 'long', timeZone: 'UTC' });
const minute = new Intl.DateTimeFormat('en-GB', {
  ...{ dateStyle: 'long', timeStyle: 'short', timeZone: 'UTC' },
});

/** The name of a country's code, and the code itself for an unknown one. */
export function countryName(code: string): string {
  return named(() => regions.of(code.toUpperCase()), code);
}

/** The name of a language tag in English. */
export function languageName(tag: string): string {
  return named(() => languages.of(tag), tag);
}

function named(find: () => string | undefined, text: string): string {
  try {
    return find() ?? text;
  } catch {
    return text;
  }
}

function deviceName(device: string): string {
  return Object.hasOwn(t.devices, device) ? t.devices[device as keyof typeof t.devices] : device;
}

function callerName(caller: string): string {
  return Object.hasOwn(t.callers, caller) ? t.callers[caller as keyof typeof t.callers] : caller;
}

function timeText(text: string): string {
  const time = new Date(text);
  if (Number.isNaN(time.getTime())) return text;
  return /^\d{4}-\d{2}-\d{2}$/.test(text) ? day.format(time) : `${minute.format(time)} UTC`;
}

function listText(value: Json, name: (text: string) => string = String): string {
  const values: readonly Json[] = Array.isArray(value) ? value : [value];
  return either.format(
    values.map((one) => (typeof one === 'string' ? name(one) : JSON.stringify(one))),
  );
}

function pairsText(value: Json): string {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return JSON.stringify(value);
  }
  return Object.entries(value)
    .map(([name, one]) => (one === '*' ? name : `${name}=${listText(one)}`))
    .join(', ');
}

/** What a condition says of a visitor: `from Switzerland`. */
const phrases: Readonly<Record<ConditionName, (value: Json) => string>> = {
  country: (value) => t.phrase.country(listText(value, countryName)),
  device: (value) => t.phrase.device(listText(value, deviceName)),
  lang: (value) => t.phrase.lang(listText(value, languageName)),
  percent: () => '',
  after: (value) => t.phrase.after(listText(value, timeText)),
  before: (value) => t.phrase.before(listText(value, timeText)),
  user: (value) => (value === '*' ? t.phrase.anyUser : t.phrase.user(listText(value))),
  role: (value) => t.phrase.role(listText(value)),
  place: (value) => t.phrase.place(listText(value)),
  region: (value) => t.phrase.region(listText(value)),
  city: (value) => t.phrase.city(listText(value)),
  referer: (value) => t.phrase.referer(listText(value)),
  caller: (value) => t.phrase.caller(listText(value, callerName)),
  query: (value) => t.phrase.query(pairsText(value)),
  ip: (value) => t.phrase.ip(listText(value)),
};

/** Whom a branch is for: `Visitors from Switzerland, on a phone`. */
export function visitorsText(conditions: readonly ConditionDraft[]): string {
  const percent = conditions.find(({ name }) => name === 'percent');
  const all = conditions
    .filter((one) => one !== percent)
    .map(({ name, value, text }) =>
      isConditionName(name) ? phrases[name](value) : t.phrase.unknown(name, text),
    );
  const start = percent === undefined ? t.visitors : t.share(percent.text);
  if (all.length === 0) return percent === undefined ? t.everyone : start;
  return `${start} ${all.join(', ')}`;
}

/** What visitors get: `go to /offers/`. */
export function outcomeText({ kind, text, status }: OutcomeDraft): string {
  const code = status.trim() === '' ? '' : ` (${status.trim()})`;
  switch (kind) {
    case 'target':
      return text === '' ? t.outcome.missing : t.outcome.target(text) + code;
    case 'key':
      return text === '' ? t.outcome.missing : t.outcome.key(text);
    case 'html':
      return t.outcome.html + code;
    case 'status':
      return t.outcome.status(status.trim());
    case 'none':
      return t.outcome.none;
  }
}
