import { isInside } from '../../core/values/bounds.ts';
import type { StaticOutput } from '../../core/values/json/static.ts';
import { visitNamesMax } from '../../core/log/limits.ts';
import {
  addCounts,
  noVisits,
  pageDimensions,
  siteDimensions,
  type PageDimension,
  type SiteDimension,
  type VisitCounts,
} from './visit-counts.ts';
import type { DaySpan, DayVisits } from './visit-database.ts';
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
} from './visit-days.ts';

/** The parts of visit.summary. */
interface VisitParts {
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** The stored counts. */
  readonly requestVisits: {
    /** Writes the counts in the memory of this process. */
    flush(): Promise<void>;
    ofPage(
      path: string,
      origin: string | undefined,
      span: DaySpan,
    ): Iterable<DayVisits<PageDimension>>;
    ofPages(span: DaySpan): AsyncIterable<DayVisits<PageDimension>>;
    ofSite(span: DaySpan): AsyncIterable<DayVisits<SiteDimension>>;
    /** How long counts are stored; 0 if nothing is counted. */
    readonly retentionMs: number;
  };
}

const optionalText = { type: 'string', nullable: true } as const;
const count = { type: 'integer', minimum: 0 } as const;

const pageSchema = {
  type: 'object',
  required: ['origin', 'path', 'visits', 'robots'],
  properties: {
    origin: { type: 'string' },
    path: { type: 'string', description: 'Empty for all above the limit of a day.' },
    ...sumSchemas,
  },
} as const;

const requestsSchema = {
  type: 'object',
  description:
    'All answers of the access log; absent with `origin` or `path`, and for keys with bounds.',
  required: ['answers', 'statuses', 'sources', 'refused'],
  properties: {
    answers: { ...count, description: 'The lines of the access log.' },
    statuses: {
      type: 'object',
      properties: { '1xx': count, '2xx': count, '3xx': count, '4xx': count, '5xx': count },
    },
    sources: {
      type: 'array',
      description: 'The answers by the field `source` of the access log.',
      items: {
        type: 'object',
        required: ['source', 'answers', 'failed', 'slow'],
        properties: {
          source: { type: 'string' },
          answers: count,
          failed: { ...count, description: 'Answers with a status of 500 or more.' },
          slow: { ...count, description: 'Answers that took one second or longer.' },
        },
      },
    },
    refused: {
      type: 'array',
      description: 'Whom access rules, rates, keys and sources kept out.',
      items: {
        type: 'object',
        required: ['source', 'status', 'reason', 'answers'],
        properties: {
          source: { type: 'string', description: '`access:<name>`, `rate:<name>`, `svc1` …' },
          status: { type: 'integer', description: '0 for those above the limit.' },
          reason: {
            type: 'string',
            description: 'The key of the access rule, or the code of the failure.',
          },
          answers: count,
        },
      },
    },
  },
} as const;

const pageShape = { dimensions: pageDimensions, namesMax: visitNamesMax };
const siteShape = { dimensions: siteDimensions, namesMax: visitNamesMax };

/**
 * visit.summary: the visits of pages by day, page, source, country, language, device and referring
 * host, and what happened to all requests (docs/design/visits.md), of all pages or of some. A key
 * with bounds gets the pages inside them.
 */
export const visitSummary = defineOperation({
  name: 'svc1.visit.summary',
  scope: 'read',
  effect: 'reads',
  summary: 'The visits of pages by day, page, country, language, device and host; refusals.',
  output: {
    title: 'VisitSummary',
    type: 'object',
    required: [
      ...(['from', 'until', 'retention_days', 'visits', 'robots', 'days', 'pages'] as const),
      ...pageDimensions,
    ],
    properties: {
      ...spanSchemas,
      days: {
        type: 'array',
        description: 'Each day, also those without visits.',
        items: {
          type: 'object',
          required: ['day', 'visits', 'robots'],
          properties: { day: { type: 'string' }, ...sumSchemas },
        },
      },
      pages: { type: 'array', description: 'The most visited first.', items: pageSchema },
      sources: { ...names, description: 'disk, stored, proxied, cache or other.' },
      languages: { ...names, description: 'ISO 639 codes, (none) or (unknown).' },
      hosts: { ...names, description: 'The referring hosts, (this site) or (none).' },
      origins: names,
      requests: requestsSchema,
    },
  },
  input: {
    type: 'object',
    properties: {
      path: { ...optionalText, maxLength: 8_192, description: 'The path of one page.' },
      origin: { ...optionalText, description: 'The origin of the pages; all by default.' },
      ...spanFields,
    },
  },
  run:
    ({ requestVisits, now }: VisitParts) =>
    async ({ path, origin, limit, ...given }, { caller }) => {
      const span = spanOf(given, now());
      await requestVisits.flush();
      const isInPart = (one: DayVisits<PageDimension>): boolean =>
        (origin === undefined || one.origin === origin) && isInside(caller.bounds, one);
      const rows =
        path === undefined ? requestVisits.ofPages(span) : requestVisits.ofPage(path, origin, span);
      const found = await sumOf(rows, span, isInPart);
      const isWhole = path === undefined && origin === undefined && caller.bounds === undefined;
      const site = isWhole ? await siteOf(requestVisits.ofSite(span)) : undefined;
      const total = site ?? found.total;
      return {
        kind: 'data',
        data: {
          ...span,
          retention_days: retentionDays(requestVisits.retentionMs),
          visits: total.visits,
          robots: total.robots,
          days: found.days,
          pages: [...found.pages.most(limit)],
          sources: namesOf(total.sources),
          countries: namesOf(total.countries),
          languages: namesOf(total.languages),
          devices: namesOf(total.devices),
          hosts: namesOf(total.hosts),
          ...(site !== undefined && {
            origins: namesOf(site.origins),
            requests: requestsOf(site),
          }),
        },
      };
    },
});

/** The sums of the pages of a part of the site. */
async function sumOf(
  rows: AsyncIterable<DayVisits<PageDimension>> | Iterable<DayVisits<PageDimension>>,
  span: DaySpan,
  isInPart: (one: DayVisits<PageDimension>) => boolean,
) {
  const total = noVisits(pageShape);
  const byDay = new Map(daysIn(span).map((day) => [day, { day, visits: 0, robots: 0 }]));
  const pages = new PlaceVisits();
  for await (const one of rows) {
    if (!isInPart(one)) continue;
    const { day, counts } = one;
    addCounts(total, counts, pageShape);
    pages.add(one);
    const ofDay = byDay.get(day);
    if (ofDay === undefined) continue;
    ofDay.visits += counts.visits;
    ofDay.robots += counts.robots;
  }
  return { total, days: [...byDay.values()], pages };
}

async function siteOf(
  rows: AsyncIterable<DayVisits<SiteDimension>>,
): Promise<VisitCounts<SiteDimension>> {
  const total = noVisits(siteShape);
  for await (const { counts } of rows) addCounts(total, counts, siteShape);
  return total;
}

function requestsOf(site: VisitCounts<SiteDimension>): StaticOutput<typeof requestsSchema> {
  const { statuses, answers, failed, slow, refused } = site;
  return {
    answers: [...statuses.values()].reduce((all, one) => all + one, 0),
    statuses: Object.fromEntries(statuses),
    sources: namesOf(answers).map(({ name, visits }) => ({
      source: name,
      answers: visits,
      failed: failed.get(name) ?? 0,
      slow: slow.get(name) ?? 0,
    })),
    refused: namesOf(refused).map(({ name, visits }) => {
      const [source = '', status = '0', reason = ''] = name.split(' ');
      return { source, status: Number(status), reason, answers: visits };
    }),
  };
}
