import { unknownField } from '../../../core/operations/problems.ts';
import type { Problem } from '../../../core/values/failure.ts';
import { type Json, type JsonObject, isJsonObject } from '../../../core/values/json/json.ts';
import { nearestName } from '../../../core/values/nearest.ts';
import { isTimeZone, minutesOfDay } from '../../../core/values/time.ts';
import { durationMs, sizeBytes } from '../../../core/values/units.ts';
import type { HookBatch } from '../hook.ts';
import { hookBatchBytesMax } from '../limits.ts';
import { hookBatchEventsMax, hookBatchTimesMax } from './limits.ts';

const hookBatchEveryMsMin = 1_000;
const hookBatchEveryMsMax = 86_400_000;

const modes = ['each', 'batch'] as const;
const standardEvery = '60s';
const standardZone = 'UTC';

type Mistake = Omit<Problem, 'field'>;

/** The members of a batch, each with the check of its values. */
const members: Readonly<
  Record<Exclude<keyof HookBatch, 'mode'>, (value: Json) => Mistake | undefined>
> = {
  every: everyMistake,
  at: atMistake,
  zone: (value) =>
    typeof value === 'string' && isTimeZone(value)
      ? undefined
      : {
          reason: 'bad_format',
          message: 'zone has to be a time zone such as Europe/Zurich or UTC.',
        },
  max_events: (value) => numberMistake('max_events', value, hookBatchEventsMax),
  max_bytes: bytesMistake,
};

/**
 * Reads the frequency of a hook: `{mode: each}`, or `{mode: batch}` with `every`, or `at` and
 * `zone`. It is valid or waits as a whole.
 */
export function readFrequency(value: Json): FieldReading {
  if (!isJsonObject(value)) {
    const message = 'frequency has to be an object such as {"mode": "batch", "every": "60s"}.';
    return { waiting: value, problems: [{ field: 'frequency', reason: 'wrong_type', message }] };
  }
  const problems = mistakesIn(value);
  if (problems.some(({ reason }) => reason !== 'no_effect')) return { waiting: value, problems };
  return { value: value.mode === 'each' ? value : batchOf(value), problems };
}

function mistakesIn({ mode, ...given }: JsonObject): readonly Problem[] {
  if (mode === undefined) {
    return [{ field: 'frequency.mode', reason: 'missing', message: 'mode is each or batch.' }];
  }
  if (mode !== 'each' && mode !== 'batch') {
    const suggestion = typeof mode === 'string' ? nearestName(mode, modes) : undefined;
    const message = 'mode has to be each or batch.';
    const reason = typeof mode === 'string' ? 'bad_format' : 'wrong_type';
    return [{ field: 'frequency.mode', reason, message, ...(suggestion && { suggestion }) }];
  }
  const problems = Object.entries(given).flatMap(([name, value]) =>
    memberProblem(mode, name, value),
  );
  const field = 'frequency.at';
  if (given.every !== undefined && given.at !== undefined) {
    const message =
      'A batch is sent after an interval (every) or at times of the day (at): give one of them.';
    problems.push({ field, reason: 'bad_format', message });
  } else if (mode === 'batch' && given.zone !== undefined && given.at === undefined) {
    const message = 'zone is the time zone of the times in at; without at it has no effect.';
    problems.push({ field: 'frequency.zone', reason: 'no_effect', message });
  }
  return problems;
}

function memberProblem(mode: string, name: string, value: Json): readonly Problem[] {
  const field = `frequency.${name}`;
  const known = Object.keys(members);
  if (!known.includes(name)) return [unknownField(field, name, known)];
  if (mode === 'each') {
    return [{ field, reason: 'not_for_kind', message: `${name} belongs to the mode batch.` }];
  }
  const mistake = members[name as keyof typeof members](value);
  return mistake === undefined ? [] : [{ field, ...mistake }];
}

function batchOf({
  every,
  at,
  zone,
  max_events: events,
  max_bytes: bytes,
}: JsonObject): JsonObject {
  const when =
    at === undefined
      ? { every: every ?? standardEvery, ...(zone !== undefined && { zone }) }
      : { at: [...new Set(listOf(at))].toSorted(), zone: zone ?? standardZone };
  return {
    mode: 'batch',
    ...when,
    max_events: wholeNumber(events ?? 500, 1, hookBatchEventsMax) ?? null,
    max_bytes: textOf(bytes ?? '1MiB'),
  };
}

function everyMistake(value: Json): Mistake | undefined {
  const text = textOf(value);
  const ms = typeof value === 'string' ? durationMs(text) : undefined;
  if (ms !== undefined && ms >= hookBatchEveryMsMin && ms <= hookBatchEveryMsMax) return undefined;
  if (ms !== undefined) {
    const message = 'every has to be 1s to 24h. Use at for a time of the day.';
    return { reason: 'out_of_range', message };
  }
  const isNumber = /^\d{1,9}$/.test(text);
  return {
    reason: typeof value === 'string' ? 'bad_format' : 'wrong_type',
    message: 'every has to be a text with a number and a unit, such as 60s, 5m or 2h.',
    ...(isNumber && { suggestion: `${text}s` }),
  };
}

function atMistake(value: Json): Mistake | undefined {
  const times = listOf(value);
  const isText = times.every((time) => typeof time === 'string');
  const message = 'at has to be a list of times of the day, such as ["02:00", "14:30"].';
  if (!isText) return { reason: 'wrong_type', message };
  if (times.some((time) => minutesOfDay(time) === undefined))
    return { reason: 'bad_format', message };
  if (times.length > 0 && times.length <= hookBatchTimesMax) return undefined;
  return { reason: 'out_of_range', message: `at has to have 1 to ${hookBatchTimesMax} times.` };
}

function numberMistake(name: string, value: Json | undefined, max: number): Mistake | undefined {
  const message = `${name} has to be a number from 1 to ${max}.`;
  if (typeof value !== 'number') return { reason: 'wrong_type', message };
  const isValid = Number.isInteger(value) && value >= 1 && value <= max;
  return isValid ? undefined : { reason: 'out_of_range', message };
}

function bytesMistake(value: Json): Mistake | undefined {
  const bytes = sizeBytes(textOf(value));
  if (bytes !== undefined && bytes >= 1 && bytes <= hookBatchBytesMax) return undefined;
  const message = 'max_bytes has to be a size such as 64KiB or 1MiB, up to 16MiB.';
  return { reason: bytes === undefined ? 'bad_format' : 'out_of_range', message };
}

function textOf(value: Json): string {
  return typeof value === 'number' ? String(value) : typeof value === 'string' ? value : '';
}

function listOf(value: Json): readonly Json[] {
  return Array.isArray(value) ? (value as readonly Json[]) : [value];
}

/** The result of reading a value for a field of a hook. */
export interface FieldReading {
  /** The valid value, or the valid members of it; undefined if there is none. */
  readonly value?: Json | undefined;
  /** The rest, which waits in `_unknowns_`; undefined if all of it is valid. */
  readonly waiting?: Json | undefined;
  readonly problems: readonly Problem[];
}

/** A whole number between two others, both included; undefined for other values. */
export function wholeNumber(value: Json, min: number, max: number): number | undefined {
  if (typeof value !== 'number' || !Number.isInteger(value)) return undefined;
  return value >= min && value <= max ? value : undefined;
}
