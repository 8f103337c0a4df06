import { visitDaysMax } from '../../core/operations/limits.ts';
import { Failure } from '../../core/values/failure.ts';
import type { StaticOutput } from '../../core/values/json/static.ts';
import type { DaySpan, DayVisits } from './visit-database.ts';

/** Breadcrumbs in an answer of breadcrumb.visits, and pages in one of visit.summary. */
const visitedKeysDefault = 100;
const visitedKeysMax = 1_000;

const dayMs = 86_400_000;
const daysDefault = 30;

const optionalText = { type: 'string', nullable: true } as const;
const day = { ...optionalText, pattern: '^\\d{4}-\\d{2}-\\d{2}$' } as const;

/** The input fields of a span of days, and how many of the most visited an answer has. */
export const spanFields = {
  from: { ...day, description: 'The first day, in UTC; 30 days up to `until` by default.' },
  until: { ...day, description: 'The last day; today by default.' },
  limit: {
    type: 'integer',
    minimum: 1,
    maximum: visitedKeysMax,
    nullable: true,
    description: `Of the most visited, those in the answer; ${visitedKeysDefault} by default.`,
  },
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

const robotsSchema = {
  ...count,
  description: 'Visits of robots, which `visits` does not contain.',
} as const;

/** The members that answers about a span of days share. */
export const spanSchemas = {
  from: { type: 'string', description: 'The first day, in UTC.' },
  until: { type: 'string', description: 'The last day.' },
  retention_days: { ...count, description: '`[stats] retention`; 0 if nothing is counted.' },
  visits: { ...count, description: 'Visits by browsers.' },
  robots: robotsSchema,
  countries: { ...namesSchema, description: 'ISO 3166-1 codes, or (unknown).' },
  devices: { ...namesSchema, description: 'mobile, tablet, desktop or (unknown).' },
} as const;

/** Whom an answer counts, for a page, a breadcrumb, or a day. */
export const sumSchemas = { visits: count, robots: robotsSchema } as const;

type VisitedPlace = Record<'origin' | 'path', string> & Record<'visits' | 'robots', number>;

/** Sums the visits of each page or breadcrumb, row by row. */
export class PlaceVisits {
  readonly #sums = new Map<string, VisitedPlace>();

  add({ origin, path, counts: { visits, robots } }: DayVisits<never>): void {
    const name = `${origin}\n${path}`;
    const sum = this.#sums.get(name) ?? { origin, path, visits: 0, robots: 0 };
    sum.visits += visits;
    sum.robots += robots;
    this.#sums.set(name, sum);
  }

  /** Those with the most visits, first. */
  most(limit = visitedKeysDefault): readonly Readonly<VisitedPlace>[] {
    return [...this.#sums.values()]
      .toSorted((one, other) => other.visits - one.visits || other.robots - one.robots)
      .slice(0, limit);
  }
}

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
