import type { StaticOutput } from '../../core/values/json/static.ts';
import type { GatherMetrics, Metric, Sample } from '../../core/report/metrics.ts';
import { quantileMs } from '../status/series.ts';
import { sourceBoundsSeconds } from './limits.ts';
import { defineOperation } from '../../core/operations/operation.ts';

const count = { type: 'integer', minimum: 0 } as const;
const milliseconds = {
  type: ['number', 'null'],
  description: 'Null without answers in the last minutes.',
} as const;

const sourceSchema = {
  title: 'Source',
  type: 'object',
  required: [
    ...['origin', 'requests', 'failed', 'server_errors', 'open_requests', 'connections'],
    ...['set_aside', 'check_problem', 'p50_ms', 'p99_ms', 'last_error'],
  ],
  properties: {
    origin: { type: 'string' },
    requests: { ...count, description: 'Requests since the server started.' },
    failed: { ...count, description: 'Requests without an answer.' },
    server_errors: { ...count, description: 'Answers with a status of 500 or more.' },
    open_requests: count,
    connections: { ...count, description: 'Open connections, also those without a request.' },
    set_aside: {
      type: 'boolean',
      description: 'Whether it has failed, so that other sources of its rules get the requests.',
    },
    check_problem: {
      type: ['string', 'null'],
      description: 'Why its health check fails; null if it passes, or there is none.',
    },
    p50_ms: { ...milliseconds, description: 'Half of the answers began within this time.' },
    p99_ms: milliseconds,
    last_error: {
      type: ['object', 'null'],
      required: ['message', 'at'],
      properties: {
        message: { type: 'string' },
        at: { type: 'string', format: 'date-time' },
      },
    },
  },
} as const;

type SourceRow = StaticOutput<typeof sourceSchema>;

/** source.list: the servers that rules fetch content from, of all processes that share the port. */
export const listSources = defineOperation({
  name: 'svc1.source.list',
  scope: 'read',
  effect: 'reads',
  summary: 'The servers that content is fetched from: requests, failures, durations, connections.',
  input: { type: 'object' },
  output: {
    title: 'SourceList',
    type: 'object',
    required: ['rows'],
    properties: { rows: { type: 'array', items: sourceSchema } },
  },
  run:
    ({ gatherMetrics }: { readonly gatherMetrics: GatherMetrics }) =>
    async () => {
      const metrics = (await gatherMetrics()).flatMap((one) => one.metrics);
      const known = ['source_requests', 'source_checks'];
      const origins = new Set(known.flatMap((name) => samplesOf(metrics, name).map(originOf)));
      const rows = [...origins].toSorted().map((origin) => sourceRow(origin, metrics));
      return { kind: 'data', data: { rows } };
    },
});

function samplesOf(metrics: readonly Metric[], name: string): readonly Sample[] {
  return metrics.filter((one) => one.name === name).flatMap(({ samples }) => samples);
}

function originOf({ labels }: Sample): string {
  return labels.source ?? '';
}

function sourceRow(origin: string, metrics: readonly Metric[]): SourceRow {
  const of = (name: string): readonly Sample[] =>
    samplesOf(metrics, name).filter((one) => originOf(one) === origin);
  const sum = (name: string): number => of(name).reduce((all, { value }) => all + value, 0);
  const durations = durationsOf(of('source_durations'));
  const quantile = (share: number): number | null =>
    quantileMs(durations, sourceBoundsSeconds, share);
  const errors = of('source_last_errors').toSorted((one, other) =>
    (other.labels.at ?? '').localeCompare(one.labels.at ?? ''),
  );
  return {
    origin,
    requests: sum('source_requests'),
    failed: sum('source_failed'),
    server_errors: sum('source_server_errors'),
    open_requests: sum('source_open'),
    connections: sum('source_connections'),
    set_aside: sum('source_set_aside') > 0,
    check_problem: of('source_checks').find(({ value }) => value > 0)?.labels.problem ?? null,
    p50_ms: quantile(0.5),
    p99_ms: quantile(0.99),
    last_error: lastError(errors[0]),
  };
}

function lastError(sample: Sample | undefined): SourceRow['last_error'] {
  if (sample === undefined) return null;
  const { message = '', at = '' } = sample.labels;
  return { message, at };
}

/** The answers in each bucket, from cumulative buckets of several histograms. */
function durationsOf(samples: readonly Sample[]): readonly number[] {
  const upTo = [...sourceBoundsSeconds.map(String), '+Inf'].map((bound) =>
    samples
      .filter(({ suffix, labels }) => suffix === '_bucket' && labels.le === bound)
      .reduce((all, { value }) => all + value, 0),
  );
  return upTo.map((value, at) => value - (upTo[at - 1] ?? 0));
}
