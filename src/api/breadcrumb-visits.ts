import type { StaticInput, StaticOutput } from '../model/static.ts';
import { isInside } from '../model/bounds.ts';
import { Failure } from '../model/failure.ts';
import { breadcrumbKeyCharactersMax } from '../model/limits.ts';
import {
  addCounts,
  noVisits,
  visitDimensions,
  type VisitCounts,
} from '../store/visits/visit-counts.ts';
import type { DaySpan, DayVisits } from '../store/visits/visit-database.ts';
import { visitDaysMax, visitedKeysDefault, visitedKeysMax } from './limits.ts';
import { defineOperation } from './operation.ts';

/** The parts of breadcrumb.visits. */
interface VisitParts {
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** The stored counts. */
  readonly visits: {
    /** Writes the counts in the memory of this process. */
    flush(): Promise<void>;
    ofKey(path: string, origin: string | undefined, span: DaySpan): Iterable<DayVisits>;
    ofAll(span: DaySpan): AsyncIterable<DayVisits>;
    /** How long counts are stored; 0 if nothing is counted. */
    readonly retentionMs: number;
  };
}

const dayMs = 86_400_000;
const daysDefault = 30;

const optionalText = { type: 'string', nullable: true } as const;
const day = { ...optionalText, pattern: '^\\d{4}-\\d{2}-\\d{2}$' } as const;
const count = { type: 'integer', minimum: 0 } as const;
const names = {
  type: 'array',
  description: 'The most frequent first; (other) stands for those above the limit.',
  items: {
    type: 'object',
    required: ['name', 'visits'],
    properties: { name: { type: 'string' }, visits: count },
  },
} as const;
const robots = { ...count, description: 'Visits of robots, which `visits` does not contain.' };

const visitedKey = {
  type: 'object',
  required: ['k', 'origin', 'visits', 'robots'],
  properties: {
    k: { type: 'string', description: 'Empty for all above the limit of a day.' },
    origin: { type: 'string' },
    visits: count,
    robots,
  },
} as const;

type VisitedKey = StaticOutput<typeof visitedKey>;

const visitsInput = {
  type: 'object',
  properties: {
    k: { ...optionalText, maxLength: breadcrumbKeyCharactersMax, description: 'The key of one.' },
    origin: { ...optionalText, description: 'The origin of its rule; all by default.' },
    from: { ...day, description: 'The first day, in UTC; 30 days up to `until` by default.' },
    until: { ...day, description: 'The last day; today by default.' },
    limit: {
      type: 'integer',
      minimum: 1,
      maximum: visitedKeysMax,
      nullable: true,
      description: `Keys in the answer; ${visitedKeysDefault} by default.`,
    },
  },
} as const;

type VisitsInput = StaticInput<typeof visitsInput>;

/**
 * breadcrumb.visits: how often breadcrumbs were followed (docs/design/rendering.md#visit-counts),
 * by day, branch, country, device and referring host: of one key, or of all with the most visited
 * keys.
 */
export const breadcrumbVisits = defineOperation({
  name: 'svc1.breadcrumb.visits',
  scope: 'read',
  effect: 'reads',
  summary: 'The visits of a breadcrumb, or of all, by day, branch, country, device and host.',
  output: {
    title: 'BreadcrumbVisits',
    type: 'object',
    required: ['from', 'until', 'retention_days', 'visits', 'robots', 'days', ...visitDimensions],
    properties: {
      from: { type: 'string', description: 'The first day, in UTC.' },
      until: { type: 'string', description: 'The last day.' },
      retention_days: { ...count, description: '`[stats] retention`; 0 if nothing is counted.' },
      visits: count,
      robots,
      days: {
        type: 'array',
        description: 'Each day, also those without visits.',
        items: {
          type: 'object',
          required: ['day', 'visits', 'robots'],
          properties: {
            day: { type: 'string' },
            visits: count,
            robots,
            branches: {
              type: 'object',
              additionalProperties: count,
              description: 'Visits by branch, of one key.',
            },
          },
        },
      },
      branches: { ...names, description: 'when[0] and so on, or default.' },
      countries: { ...names, description: 'ISO 3166-1 codes, or (unknown).' },
      devices: { ...names, description: 'mobile, tablet, desktop or (unknown).' },
      hosts: { ...names, description: 'The hosts of the pages with the link, or (none).' },
      keys: {
        type: 'array',
        description: 'The most visited breadcrumbs; absent if the input names one.',
        items: visitedKey,
      },
    },
  },
  input: visitsInput,
  run:
    ({ visits, now }: VisitParts) =>
    async ({ k, origin, limit = visitedKeysDefault, ...given }, { caller }) => {
      const span = spanOf(given, now());
      await visits.flush();
      const all =
        k === undefined ? await ofAll(visits, span, origin) : [...visits.ofKey(k, origin, span)];
      const rows = all.filter((one) => isInside(caller.bounds, one));
      const total = noVisits();
      const byDay = new Map(daysIn(span).map((one) => [one, noVisits()]));
      for (const { day: at, counts } of rows) {
        addCounts(total, counts);
        addCounts(byDay.get(at) ?? noVisits(), counts);
      }
      return {
        kind: 'data',
        data: {
          ...span,
          retention_days: Math.floor(visits.retentionMs / dayMs),
          visits: total.visits,
          robots: total.robots,
          days: [...byDay].map(([at, counts]) => ({
            day: at,
            visits: counts.visits,
            robots: counts.robots,
            ...(k !== undefined && { branches: Object.fromEntries(counts.branches) }),
          })),
          branches: namesOf(total.branches),
          countries: namesOf(total.countries),
          devices: namesOf(total.devices),
          hosts: namesOf(total.hosts),
          ...(k === undefined && { keys: keysOf(rows, limit) }),
        },
      };
    },
});

/** Reads the rows of all breadcrumbs, at one origin of their rules or at all. */
async function ofAll(
  visits: VisitParts['visits'],
  span: DaySpan,
  origin: string | undefined,
): Promise<readonly DayVisits[]> {
  const rows: DayVisits[] = [];
  for await (const one of visits.ofAll(span)) {
    if (origin === undefined || one.origin === origin) rows.push(one);
  }
  return rows;
}

function namesOf(counts: VisitCounts['hosts']): StaticOutput<typeof names> {
  return [...counts]
    .toSorted(([one, visits], [other, more]) => more - visits || (one < other ? -1 : 1))
    .map(([name, visits]) => ({ name, visits }));
}

function keysOf(rows: readonly DayVisits[], limit: number): readonly VisitedKey[] {
  const keys = new Map<string, { -readonly [Name in keyof VisitedKey]: VisitedKey[Name] }>();
  for (const { path, origin, counts } of rows) {
    const name = `${origin}\n${path}`;
    const sum = keys.get(name) ?? { k: path, origin, visits: 0, robots: 0 };
    sum.visits += counts.visits;
    sum.robots += counts.robots;
    keys.set(name, sum);
  }
  const sorted = [...keys.values()].toSorted(
    (one, other) => other.visits - one.visits || other.robots - one.robots,
  );
  return sorted.slice(0, limit);
}

function spanOf({ from, until }: Pick<VisitsInput, 'from' | 'until'>, nowMs: number): DaySpan {
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
      {
        field: 'from',
      },
    );
  }
  return { from: dayText(firstMs), until: dayText(lastMs) };
}

function timeOf(text: string, field: string): number {
  const ms = Date.parse(`${text}T00:00:00Z`);
  if (!Number.isNaN(ms) && dayText(ms) === text) return ms;
  throw new Failure('invalid', `${text} is no day: write one such as 2026-11-24.`, { field });
}

function dayText(ms: number): string {
  return new Date(ms).toISOString().slice(0, 'yyyy-mm-dd'.length);
}

function daysIn({ from, until }: DaySpan): readonly string[] {
  const first = Date.parse(from);
  const days = Math.round((Date.parse(until) - first) / dayMs) + 1;
  return Array.from({ length: days }, (_, at) => dayText(first + at * dayMs));
}
