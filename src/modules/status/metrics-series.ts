import { seriesTiers } from '../../core/report/limits.ts';
import { quantileMs, type Series, type SeriesPoint } from './series.ts';
import type { StaticOutput } from '../../core/values/json/static.ts';
import { defineOperation } from '../../core/operations/operation.ts';

/** The parts of metrics.series; `now` is in milliseconds since 1970. */
interface SeriesParts {
  readonly series: () => Promise<Series>;
  readonly now: () => number;
}

const hourMs = 3_600_000;

/** The times that an answer can cover, by name. */
const spans = {
  '1h': hourMs,
  '3h': 3 * hourMs,
  '24h': 24 * hourMs,
  '3d': 72 * hourMs,
  '7d': 168 * hourMs,
  '30d': 720 * hourMs,
} as const;
type Span = keyof typeof spans;
const spanNames = Object.keys(spans) as Span[];

const count = { type: 'integer', minimum: 0 } as const;
const milliseconds = { type: ['number', 'null'], description: 'Null without responses.' } as const;

const pointSchema = {
  type: 'object',
  required: [
    'time',
    'requests',
    'status',
    'sources',
    'p50_ms',
    'p99_ms',
    'cache',
    'bytes',
    'hooks',
  ],
  properties: {
    time: { type: 'string', format: 'date-time', description: 'The start of the point.' },
    requests: { ...count, description: 'Responses of the site, without those of /svc1.' },
    status: {
      type: 'object',
      description: 'Responses of the site by status class.',
      properties: { '1xx': count, '2xx': count, '3xx': count, '4xx': count, '5xx': count },
    },
    sources: {
      type: 'object',
      properties: { disk: count, rule: count, none: count, svc1: count },
    },
    p50_ms: milliseconds,
    p99_ms: milliseconds,
    cache: {
      type: 'object',
      description: 'Requests for fetched content, and those that the cache answered.',
      properties: { hits: count, requests: count },
    },
    bytes: { ...count, description: 'Bytes of content of all responses.' },
    hooks: {
      type: 'object',
      description: 'Attempts at deliveries of webhooks.',
      properties: { completed: count, failed: count },
    },
  },
} as const;

/**
 * metrics.series: what the server did in a time up to now, as points of equal distance, out of the
 * time series of its data folder (docs/design/console.md#time-series). Times without a process, and
 * minutes that are not over, have no point.
 */
export const metricsSeries = defineOperation({
  name: 'svc1.metrics.series',
  scope: 'read',
  effect: 'reads',
  summary: 'Requests, durations, cache, bytes and deliveries over time, up to 30 days back.',
  output: {
    title: 'MetricsSeries',
    type: 'object',
    required: ['from', 'until', 'step_ms', 'points'],
    properties: {
      from: { type: 'string', format: 'date-time' },
      until: { type: 'string', format: 'date-time' },
      step_ms: { type: 'integer', description: 'The distance of points.' },
      points: { type: 'array', items: pointSchema },
    },
  },
  input: {
    type: 'object',
    properties: {
      last: {
        type: 'string',
        enum: spanNames,
        nullable: true,
        description: 'How far back; 1h by default.',
      },
    },
  },
  run:
    ({ series, now }: SeriesParts) =>
    async ({ last = '1h' }) => {
      const until = now();
      const from = until - spans[last];
      const stored = await series();
      // The finest points that reach so far back.
      const fine = seriesTiers.findIndex(
        ({ stepMs, pointsMax }) => stepMs * pointsMax >= spans[last],
      );
      const { stepMs = hourMs, points = [] } = stored.tiers[fine] ?? {};
      const shown = points.filter(({ time }) => time + stepMs > from && time <= until);
      return {
        kind: 'data',
        data: {
          from: new Date(from).toISOString(),
          until: new Date(until).toISOString(),
          step_ms: stepMs,
          points: shown.map((point) => pointView(point, stored.bounds)),
        },
      };
    },
});

function pointView(
  { time, classes, sources, durations, cache, bytes, hooks }: SeriesPoint,
  bounds: readonly number[],
): StaticOutput<typeof pointSchema> {
  return {
    time: new Date(time).toISOString(),
    requests: classes.reduce((all, one) => all + one, 0),
    status: Object.fromEntries(classes.map((value, at) => [`${at + 1}xx`, value])),
    sources: { disk: sources[0], rule: sources[1], none: sources[2], svc1: sources[3] },
    p50_ms: quantileMs(durations, bounds, 0.5),
    p99_ms: quantileMs(durations, bounds, 0.99),
    cache: { hits: cache[0], requests: cache[1] },
    bytes,
    hooks: { completed: hooks[0], failed: hooks[1] },
  };
}
