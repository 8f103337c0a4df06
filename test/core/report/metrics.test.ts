import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import {
  Histogram,
  metricsText,
  processMetrics,
  singleMetric,
  type Metric,
} from '../../../src/core/report/metrics.ts';
import { RequestMetrics } from '../../../src/core/report/request-metrics.ts';

suite('the text format of Prometheus', () => {
  test('has each metric once, with help and type before its samples', () => {
    const seq = singleMetric('gauge', 'waymark_seq', { help: 'Where the log is.', value: 41 });
    const attempts: Metric = {
      name: 'attempts_total',
      type: 'counter',
      help: 'Attempts.',
      samples: [
        { labels: { outcome: 'failed' }, value: 1 },
        { labels: { outcome: 'completed', hook: 'a' }, value: 2.5 },
      ],
    };
    assert.equal(
      metricsText([{ metrics: [seq, attempts] }]),
      '# HELP waymark_seq Where the log is.\n' +
        '# TYPE waymark_seq gauge\n' +
        'waymark_seq 41\n' +
        '# HELP attempts_total Attempts.\n' +
        '# TYPE attempts_total counter\n' +
        'attempts_total{outcome="failed"} 1\n' +
        'attempts_total{outcome="completed",hook="a"} 2.5\n',
    );
  });

  test('has the samples of all processes with a label for each', () => {
    const metric = (value: number) => singleMetric('counter', 'x_total', { help: 'X.', value });
    assert.equal(
      metricsText([
        { name: 'worker-1', metrics: [metric(1)] },
        { name: 'worker-2', metrics: [metric(2)] },
      ]),
      '# HELP x_total X.\n# TYPE x_total counter\n' +
        'x_total{process="worker-1"} 1\nx_total{process="worker-2"} 2\n',
    );
  });

  test('escapes labels and help texts', () => {
    const odd: Metric = {
      name: 'x',
      type: 'gauge',
      help: 'a\\b\nc"d',
      samples: [{ labels: { l: 'a\\b\nc"d' }, value: Infinity }],
    };
    assert.equal(
      metricsText([{ metrics: [odd] }]),
      '# HELP x a\\\\b\\nc"d\n# TYPE x gauge\nx{l="a\\\\b\\nc\\"d"} +Inf\n',
    );
  });
});

suite('a histogram', () => {
  test('counts a value in all buckets from its size up', () => {
    const histogram = new Histogram([0.1, 1, 10]);
    for (const value of [0.05, 0.1, 0.5, 10, 11]) histogram.observe(value);
    const samples = histogram.samples({ a: 'b' });
    assert.deepEqual(
      samples.map(({ suffix, labels, value }) => [suffix, labels.le, value]),
      [
        ['_bucket', '0.1', 2],
        ['_bucket', '1', 3],
        ['_bucket', '10', 4],
        ['_bucket', '+Inf', 5],
        ['_sum', undefined, 21.65],
        ['_count', undefined, 5],
      ],
    );
    assert.ok(samples.every(({ labels }) => labels.a === 'b'));
  });
});

test('requests are counted by status class and kind of source', () => {
  const metrics = new RequestMetrics();
  metrics.add(200, 'disk:site', 0.2);
  metrics.add(206, 'disk:other', 3);
  metrics.add(304, 'rule:0198', 1);
  metrics.add(404, 'none', 1);
  metrics.add(500, 'svc1', 12_000);
  const [total, durations] = metrics.metrics();
  assert.deepEqual(
    total?.samples.map(({ labels, value }) => [labels.source, labels.status, value]),
    [
      ['disk', '2xx', 2],
      ['rule', '3xx', 1],
      ['svc1', '5xx', 1],
      ['none', '4xx', 1],
    ],
  );
  const of = (source: string) =>
    durations?.samples.filter(({ labels }) => labels.source === source);
  const bucket = (source: string, le: string) =>
    of(source)?.find(({ labels }) => labels.le === le)?.value;
  assert.deepEqual([bucket('disk', '0.0005'), bucket('disk', '0.005')], [1, 2]);
  assert.deepEqual([bucket('svc1', '10'), bucket('svc1', '+Inf')], [0, 1]);
});

test('the metrics of the process have the names of Prometheus', () => {
  const values = new Map(processMetrics().map(({ name, samples }) => [name, samples[0]?.value]));
  assert.ok((values.get('process_resident_memory_bytes') ?? 0) > 2 ** 20);
  assert.ok((values.get('process_cpu_seconds_total') ?? 0) > 0);
  assert.ok((values.get('process_start_time_seconds') ?? Infinity) <= Date.now() / 1000);
  assert.ok((values.get('process_start_time_seconds') ?? 0) > 1_700_000_000);
});
