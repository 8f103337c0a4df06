import { isInside } from '../../core/values/bounds.ts';
import { breadcrumbKeyCharactersMax } from '../../core/values/limits.ts';
import { addCounts, breadcrumbDimensions, noVisits } from '../visits/visit-counts.ts';
import { visitNamesMax } from '../../core/log/limits.ts';
import type { DaySpan, DayVisits } from '../visits/visit-database.ts';
import { defineOperation } from '../../core/operations/operation.ts';
import {
  daysIn,
  namesOf,
  namesSchema as names,
  PlaceVisits,
  retentionDays,
  spanFields,
  spanOf,
  spanSchemas,
  sumSchemas,
} from '../visits/visit-days.ts';

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
    ...sumSchemas,
  },
} as const;

const visitsInput = {
  type: 'object',
  properties: {
    k: { ...optionalText, maxLength: breadcrumbKeyCharactersMax, description: 'The key of one.' },
    origin: { ...optionalText, description: 'The origin of its rule; all by default.' },
    ...spanFields,
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
      ...spanSchemas,
      days: {
        type: 'array',
        description: 'Each day, also those without visits.',
        items: {
          type: 'object',
          required: ['day', 'visits', 'robots'],
          properties: {
            day: { type: 'string' },
            ...sumSchemas,
            branches: {
              type: 'object',
              additionalProperties: count,
              description: 'Visits by branch, of one key.',
            },
          },
        },
      },
      branches: { ...names, description: 'when[0] and so on, or default.' },
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
    async ({ k, origin, limit, ...given }, { caller }) => {
      const span = spanOf(given, now());
      await visits.flush();
      const all =
        k === undefined ? await ofAll(visits, span, origin) : [...visits.ofKey(k, origin, span)];
      const rows = all.filter((one) => isInside(caller.bounds, one));
      const total = noVisits(shape);
      const byDay = new Map(daysIn(span).map((one) => [one, noVisits(shape)]));
      const keys = new PlaceVisits();
      for (const one of rows) {
        const { day: at, counts } = one;
        keys.add(one);
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
          ...(k === undefined && {
            keys: keys.most(limit).map(({ path, ...others }) => ({ k: path, ...others })),
          }),
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
