import type { StaticOutput } from '../model/static.ts';
import { isInside } from '../model/bounds.ts';
import { breadcrumbKeyCharactersMax } from '../model/limits.ts';
import { addCounts, breadcrumbDimensions, noVisits } from '../store/visits/visit-counts.ts';
import { visitNamesMax } from '../store/limits.ts';
import type { DaySpan, DayVisits } from '../store/visits/visit-database.ts';
import { visitedKeysDefault, visitedKeysMax } from './limits.ts';
import { defineOperation } from './operation.ts';
import {
  daysIn,
  namesOf,
  namesSchema as names,
  retentionDays,
  robotsSchema as robots,
  spanFields,
  spanOf,
} from './visit-days.ts';

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

const optionalText = { type: 'string', nullable: true } as const;
const count = { type: 'integer', minimum: 0 } as const;
const shape = { dimensions: breadcrumbDimensions, namesMax: visitNamesMax };

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
    ...spanFields,
    limit: {
      type: 'integer',
      minimum: 1,
      maximum: visitedKeysMax,
      nullable: true,
      description: `Keys in the answer; ${visitedKeysDefault} by default.`,
    },
  },
} as const;

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
    required: [
      'from',
      'until',
      'retention_days',
      'visits',
      'robots',
      'days',
      ...breadcrumbDimensions,
    ],
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
      const total = noVisits(shape);
      const byDay = new Map(daysIn(span).map((one) => [one, noVisits(shape)]));
      for (const { day: at, counts } of rows) {
        addCounts(total, counts, shape);
        addCounts(byDay.get(at) ?? noVisits(shape), counts, shape);
      }
      return {
        kind: 'data',
        data: {
          ...span,
          retention_days: retentionDays(visits.retentionMs),
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
