import type { StaticOutput } from '../model/static.ts';
import { Failure } from '../model/failure.ts';
import type { DaySpan } from '../store/visits/visit-database.ts';
import { visitDaysMax } from './limits.ts';

const dayMs = 86_400_000;
const daysDefault = 30;

const optionalText = { type: 'string', nullable: true } as const;
const day = { ...optionalText, pattern: '^\\d{4}-\\d{2}-\\d{2}$' } as const;

/** The input fields of a span of days. */
export const spanFields = {
  from: { ...day, description: 'The first day, in UTC; 30 days up to `until` by default.' },
  until: { ...day, description: 'The last day; today by default.' },
} as const;

const count = { type: 'integer', minimum: 0 } as const;

/** Names with their visits, in an answer. */
export const namesSchema = {
  type: 'array',
  description: 'The most frequent first; (other) stands for those above the limit.',
  items: {
    type: 'object',
    required: ['name', 'visits'],
    properties: { name: { type: 'string' }, visits: count },
  },
} as const;

/** The visits of robots, in an answer. */
export const robotsSchema = {
  ...count,
  description: 'Visits of robots, which `visits` does not contain.',
} as const;

/** Names with their visits, the most frequent first. */
export function namesOf(counts: ReadonlyMap<string, number>): StaticOutput<typeof namesSchema> {
  return [...counts]
    .toSorted(([one, visits], [other, more]) => more - visits || (one < other ? -1 : 1))
    .map(([name, visits]) => ({ name, visits }));
}

/** The days of a query at a time in milliseconds since 1970. Throws `invalid`. */
export function spanOf(
  { from, until }: { readonly from?: string | undefined; readonly until?: string | undefined },
  nowMs: number,
): DaySpan {
  const lastMs = until === undefined ? nowMs : timeOf(until, 'until');
  const firstMs = from === undefined ? lastMs - (daysDefault - 1) * dayMs : timeOf(from, 'from');
  if (firstMs > lastMs) {
    throw new Failure('invalid', '`from` is after `until`: give an earlier day.', {
      field: 'from',
    });
  }
  if (lastMs - firstMs >= visitDaysMax * dayMs) {
    throw new Failure(
      'invalid',
      `A span has at most ${visitDaysMax} days: give a later \`from\`.`,
      { field: 'from' },
    );
  }
  return { from: dayText(firstMs), until: dayText(lastMs) };
}

/** The days of a span, in order. */
export function daysIn({ from, until }: DaySpan): readonly string[] {
  const first = Date.parse(from);
  const days = Math.round((Date.parse(until) - first) / dayMs) + 1;
  return Array.from({ length: days }, (_, at) => dayText(first + at * dayMs));
}

/** How many whole days a retention has. */
export function retentionDays(retentionMs: number): number {
  return Math.floor(retentionMs / dayMs);
}

function timeOf(text: string, field: string): number {
  const ms = Date.parse(`${text}T00:00:00Z`);
  if (!Number.isNaN(ms) && dayText(ms) === text) return ms;
  throw new Failure('invalid', `${text} is no day: write one such as 2026-11-24.`, { field });
}

function dayText(ms: number): string {
  return new Date(ms).toISOString().slice(0, 'yyyy-mm-dd'.length);
}
