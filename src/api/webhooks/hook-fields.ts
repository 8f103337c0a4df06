import { isEventType } from '../../model/event.ts';
import { isHookHeader } from '../../model/hook-header.ts';
import { anyEvent, hookMethods } from '../../model/hook.ts';
import { isJsonObject, type Json, type JsonObject } from '../../model/json.ts';
import {
  customHeadersMax,
  hookBatchBytesMax,
  hookBatchEventsMax,
  hookBatchEveryMsMax,
  hookBatchEveryMsMin,
  hookEventsMax,
  hookFieldCharactersMax,
  hookNameCharactersMax,
  hookPlaceCharactersMax,
  hookRetriesMax,
  hookUrlCharactersMax,
} from '../../model/limits.ts';
import { durationMs, sizeBytes } from '../../model/units.ts';
import { outboundUrl } from '../../outbound/url.ts';

/** One field of a hook that a caller may write (docs/design/webhooks.md#registration). */
export interface HookField {
  /** What stands there unless a caller says otherwise; undefined for nothing. */
  readonly standard: Json | undefined;
  /**
   * Of a field that decides what is sent where: what it has to be. A value that is not valid is
   * refused then, for a hook that drops it would tell others than its owner meant.
   */
  readonly decides?: string;
  /** Whether there is no hook without it. */
  readonly required?: true;
  /** The value as it is kept; undefined where it is not valid. */
  readonly parse: (value: Json) => Json | undefined;
}

const standardBatch = { every: '60s', max_events: 500, max_bytes: '1MiB' } as const;

/** The fields of a hook, those without which there is none first. */
export const hookFields: ReadonlyMap<string, HookField> = new Map<string, HookField>([
  [
    'event',
    {
      standard: undefined,
      decides: 'a list of event types such as sale.completed, or * for all',
      required: true,
      parse: parseTypes,
    },
  ],
  [
    'url',
    {
      standard: undefined,
      decides: 'an absolute http or https URL without a user',
      required: true,
      parse: parseUrl,
    },
  ],
  ['name', { standard: undefined, parse: (value) => plainText(value, hookNameCharactersMax) }],
  [
    'method',
    {
      standard: 'POST',
      parse: (value) => hookMethods.find((method) => method === upperCase(value)),
    },
  ],
  ['headers', { standard: {}, parse: parseHeaders }],
  [
    'where',
    {
      standard: undefined,
      decides: 'central, counters, or the name of a node',
      parse: (value) => plainText(value, hookPlaceCharactersMax),
    },
  ],
  ['frequency', { standard: { mode: 'each' }, parse: parseFrequency }],
  [
    'filter',
    {
      standard: {},
      decides: 'an object whose members the data of an event must have',
      parse: (value) => (isJsonObject(value) ? value : undefined),
    },
  ],
  ['order', { standard: false, parse: parseSwitch }],
  ['retry_limit', { standard: 10, parse: (value) => wholeNumber(value, 1, hookRetriesMax) }],
  ['active', { standard: true, decides: 'true or false', parse: parseSwitch }],
]);

function parseTypes(value: Json): Json | undefined {
  const types = Array.isArray(value) ? (value as readonly Json[]) : [value];
  if (types.length === 0 || types.length > hookEventsMax) return undefined;
  const named = types.filter(
    (type): type is string => typeof type === 'string' && (type === anyEvent || isEventType(type)),
  );
  if (named.length < types.length) return undefined;
  return named.includes(anyEvent) ? [anyEvent] : [...new Set(named)];
}

function parseUrl(value: Json): string | undefined {
  if (typeof value !== 'string' || value.length > hookUrlCharactersMax) return undefined;
  try {
    const url = outboundUrl(value);
    url.hash = '';
    return url.href;
  } catch {
    return undefined;
  }
}

function parseHeaders(value: Json): Json | undefined {
  if (!isJsonObject(value)) return undefined;
  const fields = Object.entries(value);
  const names = new Set(fields.map(([name]) => name.toLowerCase()));
  const isValid =
    fields.length <= customHeadersMax &&
    names.size === fields.length &&
    fields.every(
      ([name, content]) =>
        typeof content === 'string' &&
        content.length <= hookFieldCharactersMax &&
        isHookHeader(name, content),
    );
  return isValid ? value : undefined;
}

function parseFrequency(value: Json): Json | undefined {
  if (!isJsonObject(value)) return undefined;
  const { mode, ...given } = value;
  if (mode === 'each') return Object.keys(given).length === 0 ? value : undefined;
  if (mode !== 'batch') return undefined;
  const batch: JsonObject = { ...standardBatch, ...given };
  if (Object.keys(batch).length > Object.keys(standardBatch).length) return undefined;
  const { every = null, max_events: eventsMax = null, max_bytes: bytesMax = null } = batch;
  const everyMs = durationMs(textOf(every)) ?? NaN;
  const events = wholeNumber(eventsMax, 1, hookBatchEventsMax);
  const bytes = sizeBytes(textOf(bytesMax)) ?? NaN;
  const isValid =
    everyMs >= hookBatchEveryMsMin &&
    everyMs <= hookBatchEveryMsMax &&
    bytes >= 1 &&
    bytes <= hookBatchBytesMax;
  if (!isValid || events === undefined) return undefined;
  return { mode, every, max_events: events, max_bytes: textOf(bytesMax) };
}

function textOf(value: Json): string {
  return typeof value === 'number' ? String(value) : typeof value === 'string' ? value : '';
}

/** Forms and query strings have only texts. */
function parseSwitch(value: Json): boolean | undefined {
  if (typeof value === 'boolean') return value;
  if (value === 'true') return true;
  return value === 'false' ? false : undefined;
}

function wholeNumber(value: Json, min: number, max: number): number | undefined {
  const number = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value;
  const isValid = Number.isInteger(number) && Number(number) >= min && Number(number) <= max;
  return isValid ? Number(number) : undefined;
}

/** One line of text. */
function plainText(value: Json, charactersMax: number): string | undefined {
  if (typeof value !== 'string' || value === '' || value.length > charactersMax) return undefined;
  // oxlint-disable-next-line no-control-regex -- control characters are what it looks for
  return /[\0-\x1f\x7f-\x9f]/.test(value) || !value.isWellFormed() ? undefined : value;
}

function upperCase(value: Json): string | undefined {
  return typeof value === 'string' ? value.toUpperCase() : undefined;
}
