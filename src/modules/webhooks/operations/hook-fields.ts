import { customHeadersMax } from '../../../core/config/limits.ts';
import { isEventType } from '../../../core/values/event-type.ts';
import { withheldValue } from '../../../core/log/former-headers.ts';
import { outboundUrl } from '../../../core/outbound/address.ts';
import type { Problem, ProblemReason } from '../../../core/values/failure.ts';
import { type Json, type JsonObject, isJsonObject } from '../../../core/values/json/json.ts';
import { nearestName } from '../../../core/values/nearest.ts';
import { durationMs } from '../../../core/values/units.ts';
import { filterMistakes } from '../filter.ts';
import { anyEvent, hookHeaderMistake, hookMethods } from '../hook.ts';
import { type FieldReading, readFrequency, wholeNumber } from './hook-frequency.ts';
import {
  hookEventsMax,
  hookNameCharactersMax,
  hookPlaceCharactersMax,
  hookRetriesMax,
  hookRetryWaitsMax,
  hookTableCharactersMax,
  hookTablesMax,
  hookUrlCharactersMax,
} from './limits.ts';

/** Characters of a header field that a hook adds. */
const hookFieldCharactersMax = 4_096;
const hookRetryWaitMsMin = 1_000;
const hookRetryWaitMsMax = 30 * 86_400_000;

/** One field of a hook that callers write (docs/design/webhooks.md#registration). */
export interface HookField {
  /** The default value; undefined for none. */
  readonly standard: Json | undefined;
  /** A valid value in words, for a field that every hook needs. */
  readonly required?: string;
  /** Whether members that are not valid wait one by one. */
  readonly hasMembers?: true;
  /** Reads a value; with `hasMembers`, `members` are those that are valid already. */
  readonly read: (value: Json, members?: JsonObject) => FieldReading;
}

/** The fields of a hook, required ones first. */
export const hookFields: ReadonlyMap<string, HookField> = new Map<string, HookField>([
  [
    'event',
    {
      standard: undefined,
      required: 'a list of event types such as sale.completed, or * for all',
      read: (value) => reading('event', value, readTypes(value)),
    },
  ],
  [
    'url',
    {
      standard: undefined,
      required: 'an absolute http or https URL without a user',
      read: (value) => reading('url', value, readUrl(value)),
    },
  ],
  [
    'name',
    { standard: undefined, read: (value) => readText('name', value, hookNameCharactersMax) },
  ],
  ['method', { standard: 'POST', read: readMethod }],
  ['headers', { standard: {}, hasMembers: true, read: readHeaders }],
  [
    'where',
    {
      standard: undefined,
      read: (value) => readText('where', value, hookPlaceCharactersMax),
    },
  ],
  ['frequency', { standard: { mode: 'each' }, read: readFrequency }],
  ['filter', { standard: {}, read: readFilter }],
  ['table', { standard: undefined, read: readTables }],
  ['order', { standard: false, read: (value) => readSwitch('order', value) }],
  ['retry_limit', { standard: 10, read: readRetryLimit }],
  ['retry', { standard: undefined, read: readRetry }],
  ['active', { standard: true, read: (value) => readSwitch('active', value) }],
]);

/** The reading of a value that is valid or waits as a whole. */
function reading(
  field: string,
  sent: Json,
  value: Json | undefined,
  problem: { readonly reason: ProblemReason; readonly message: string; suggestion?: string } = {
    reason: 'bad_format',
    message: `${field} cannot be used.`,
  },
): FieldReading {
  if (value !== undefined) return { value, problems: [] };
  return { waiting: sent, problems: [{ field, ...problem }] };
}

function readTypes(value: Json): Json | undefined {
  const types = Array.isArray(value) ? (value as readonly Json[]) : [value];
  if (types.length === 0 || types.length > hookEventsMax) return undefined;
  const named = types.filter(
    (type): type is string => typeof type === 'string' && (type === anyEvent || isEventType(type)),
  );
  if (named.length < types.length) return undefined;
  return named.includes(anyEvent) ? [anyEvent] : [...new Set(named)];
}

function readFilter(value: Json): FieldReading {
  if (!isJsonObject(value)) {
    const message = 'filter has to be an object with members that the data of an event must have.';
    return reading('filter', value, undefined, { reason: 'wrong_type', message });
  }
  const mistakes = filterMistakes(value);
  const problems = mistakes.map(({ path, isWhole, message }): Problem => {
    return { field: `filter.${path}`, reason: isWhole ? 'no_effect' : 'bad_format', message };
  });
  const isValid = mistakes.every(({ isWhole }) => isWhole);
  return { ...(isValid ? { value } : { waiting: value }), problems };
}

function readTables(value: Json): FieldReading {
  const names = typeof value === 'string' ? [value] : value;
  if (!Array.isArray(names) || !names.every((name) => typeof name === 'string')) {
    const message = 'table has to be a list of names of tables.';
    return reading('table', value, undefined, { reason: 'wrong_type', message });
  }
  const isValid =
    names.length > 0 &&
    names.length <= hookTablesMax &&
    names.every((name) => name !== '' && name.length <= hookTableCharactersMax);
  return reading('table', value, isValid ? [...new Set(names)] : undefined, {
    reason: 'out_of_range',
    message:
      `table has to have 1 to ${hookTablesMax} names ` +
      `of 1 to ${hookTableCharactersMax} characters.`,
  });
}

function readUrl(value: Json): string | undefined {
  if (typeof value !== 'string' || value.length > hookUrlCharactersMax) return undefined;
  try {
    const url = outboundUrl(value);
    url.hash = '';
    return url.href;
  } catch {
    return undefined;
  }
}

function readMethod(value: Json): FieldReading {
  const text = typeof value === 'string' ? value.toUpperCase() : undefined;
  const suggestion = text && nearestName(text, hookMethods);
  return reading(
    'method',
    value,
    hookMethods.find((method) => method === text),
    {
      reason: text === undefined ? 'wrong_type' : 'bad_format',
      message: `method has to be one of ${hookMethods.join(', ')}.`,
      ...(suggestion !== undefined && { suggestion }),
    },
  );
}

function readHeaders(value: Json, members: JsonObject = {}): FieldReading {
  if (!isJsonObject(value)) {
    const message = 'headers has to be an object of names and values.';
    return reading('headers', value, undefined, { reason: 'wrong_type', message });
  }
  const valid = new Map<string, Json>();
  const waiting = new Map<string, Json>();
  const names = new Set(Object.keys(members).map((name) => name.toLowerCase()));
  const problems: Problem[] = [];
  for (const [name, content] of Object.entries(value)) {
    const problem = headerProblem(name, content, names);
    names.add(name.toLowerCase());
    if (problem === undefined) valid.set(name, content);
    else {
      waiting.set(name, content);
      const field = `headers.${name}`;
      problems.push({ ...problem, field, message: `${field}: ${problem.message}` });
    }
  }
  return {
    value: Object.fromEntries(valid),
    ...(waiting.size > 0 && { waiting: Object.fromEntries(waiting) }),
    problems,
  };
}

function headerProblem(
  name: string,
  content: Json,
  before: ReadonlySet<string>,
): Omit<Problem, 'field'> | undefined {
  if (typeof content !== 'string') {
    return { reason: 'wrong_type', message: 'The value of a header field has to be a text.' };
  }
  if (content.length > hookFieldCharactersMax) {
    const message = `The value of a header field has at most ${hookFieldCharactersMax} characters.`;
    return { reason: 'out_of_range', message };
  }
  if (content === withheldValue) {
    const message = `${withheldValue} stands for a value that a node has not got: send the value.`;
    return { reason: 'out_of_range', message };
  }
  const mistake = hookHeaderMistake(name, content);
  if (mistake !== undefined) return { reason: 'bad_format', message: mistake };
  if (before.has(name.toLowerCase())) {
    return { reason: 'bad_format', message: 'This header field occurs twice.' };
  }
  if (before.size < customHeadersMax) return undefined;
  return { reason: 'out_of_range', message: `A hook has at most ${customHeadersMax} headers.` };
}

function readSwitch(field: string, value: Json): FieldReading {
  return reading(field, value, typeof value === 'boolean' ? value : undefined, {
    reason: 'wrong_type',
    message: `${field} has to be true or false.`,
  });
}

function readRetryLimit(value: Json): FieldReading {
  const isNumber = wholeNumber(value, -Infinity, Infinity) !== undefined;
  return reading('retry_limit', value, wholeNumber(value, 1, hookRetriesMax), {
    reason: isNumber ? 'out_of_range' : 'wrong_type',
    message: `retry_limit has to be a whole number from 1 to ${hookRetriesMax}.`,
  });
}

/** The waits between attempts: durations, or one of them. */
function readRetry(value: Json): FieldReading {
  const waits = Array.isArray(value) ? (value as readonly Json[]) : [value];
  if (!waits.every((wait) => typeof wait === 'string')) {
    const message = 'retry has to be a list of waits such as ["5s", "5m", "2h"].';
    return reading('retry', value, undefined, { reason: 'wrong_type', message });
  }
  const lengths = waits.map((wait) => durationMs(wait));
  const unusable = waits.find((_, at) => lengths[at] === undefined);
  if (unusable !== undefined) {
    const message = 'Each wait in retry has to be a number and a unit, such as 5s, 5m or 2h.';
    const problem = { reason: 'bad_format', message } as const;
    const isNumber = /^\d{1,9}$/.test(unusable);
    const suggestion = { ...(isNumber && { suggestion: `${unusable}s` }) };
    return reading('retry', value, undefined, { ...problem, ...suggestion });
  }
  const areValid = lengths.every((ms = 0) => ms >= hookRetryWaitMsMin && ms <= hookRetryWaitMsMax);
  const isValid = areValid && waits.length > 0 && waits.length <= hookRetryWaitsMax;
  return reading('retry', value, isValid ? waits : undefined, {
    reason: 'out_of_range',
    message: `retry has to have 1 to ${hookRetryWaitsMax} waits of 1s to 30d.`,
  });
}

/** One line of text. */
function readText(field: string, value: Json, charactersMax: number): FieldReading {
  if (typeof value !== 'string') {
    const message = `${field} has to be a text.`;
    return reading(field, value, undefined, { reason: 'wrong_type', message });
  }
  if (value === '' || value.length > charactersMax) {
    const message = `${field} has to have 1 to ${charactersMax} characters.`;
    return reading(field, value, undefined, { reason: 'out_of_range', message });
  }
  // oxlint-disable-next-line no-control-regex -- control characters are what it looks for
  const isLine = !/[\0-\x1f\x7f-\x9f]/.test(value) && value.isWellFormed();
  return reading(field, value, isLine ? value : undefined, {
    reason: 'bad_format',
    message: `${field} has to be one line of text.`,
  });
}
