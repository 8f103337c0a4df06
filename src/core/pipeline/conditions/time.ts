import type { Json } from '../../values/json/json.ts';
import { parseDateTime } from '../../values/time.ts';
import { defineCondition, textField, type ConditionType } from './condition.ts';

/** The time of the visit. */
const at = textField(
  'The time of the visit, as a date-time; now by default.',
  (written) => {
    const nowMs = parseMoment(written);
    return nowMs === undefined ? undefined : { nowMs };
  },
  { form: 'a date-time such as 2026-01-31T12:00:00Z' },
);

/** `after`: from a date or date-time on. */
const after = defineCondition<number>({
  name: 'after',
  parse: parseMoment,
  holds: (timeMs, { visitor }) => visitor.nowMs >= timeMs,
  explain: (timeMs, { visitor }) => `It begins at ${text(timeMs)}; it is ${text(visitor.nowMs)}.`,
  vary: [],
  needs: {},
  preview: { at },
});

/** `before`: up to a date or date-time. */
const before = defineCondition<number>({
  name: 'before',
  parse: parseMoment,
  holds: (timeMs, { visitor }) => visitor.nowMs < timeMs,
  explain: (timeMs, { visitor }) => `It ended at ${text(timeMs)}; it is ${text(visitor.nowMs)}.`,
  vary: [],
  needs: {},
  preview: { at },
});

/** Conditions about the time of the visit. */
export const timeConditions: readonly ConditionType[] = [after, before];

/** A date-time in milliseconds since 1970; a date alone is its midnight in UTC. */
function parseMoment(value: Json): number | undefined {
  const isDate = typeof value === 'string' && /^\d{4}-\d\d-\d\d$/.test(value);
  const iso = parseDateTime(isDate ? `${value}T00:00:00Z` : value);
  return iso === undefined ? undefined : Date.parse(iso);
}

function text(timeMs: number): string {
  return new Date(timeMs).toISOString();
}
