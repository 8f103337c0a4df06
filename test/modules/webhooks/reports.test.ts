import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HookMetrics, type HookQueue } from '../../../src/modules/webhooks/reports.ts';

/** Samples of one metric, by their labels. */
function samplesOf(metrics: HookMetrics, name: string, queues: readonly HookQueue[] = []) {
  const metric = metrics.metrics(queues).find((one) => one.name === name);
  assert.ok(metric !== undefined, `no metric ${name}`);
  return metric.samples;
}

test('attempts are counted by outcome, with their durations', () => {
  const metrics = new HookMetrics();
  metrics.result('completed', 12);
  metrics.result('failed', 15_000);
  metrics.result('completed', 3);
  assert.deepEqual(samplesOf(metrics, 'waymark_webhook_attempts_total'), [
    { labels: { outcome: 'completed' }, value: 2 },
    { labels: { outcome: 'failed' }, value: 1 },
  ]);
  const durations = samplesOf(metrics, 'waymark_webhook_attempt_duration_seconds');
  const bucket = (le: string) => durations.find(({ labels }) => labels.le === le)?.value;
  assert.deepEqual([bucket('0.005'), bucket('0.025'), bucket('15')], [1, 2, 3]);
});

test('completed deliveries have a latency', () => {
  const metrics = new HookMetrics();
  metrics.completed(40);
  metrics.completed(90_000);
  const latencies = samplesOf(metrics, 'waymark_webhook_latency_seconds');
  const bucket = (le: string) => latencies.find(({ labels }) => labels.le === le)?.value;
  assert.deepEqual([bucket('0.05'), bucket('60'), bucket('600')], [1, 1, 2]);
});

test('each hook has the length of its queue and the age of its oldest event', () => {
  const queues = [
    { hook: 'a', pending: 3, oldestMs: 1_500 },
    { hook: 'b', pending: 0, oldestMs: 0 },
  ];
  assert.deepEqual(samplesOf(new HookMetrics(), 'waymark_webhook_pending', queues), [
    { labels: { hook: 'a' }, value: 3 },
    { labels: { hook: 'b' }, value: 0 },
  ]);
  assert.deepEqual(samplesOf(new HookMetrics(), 'waymark_webhook_oldest_seconds', queues), [
    { labels: { hook: 'a' }, value: 1.5 },
    { labels: { hook: 'b' }, value: 0 },
  ]);
});

test('any number of hooks makes a limited number of series, among them the longest queues', () => {
  const queues = Array.from({ length: 5_000 }, (_, at) => ({
    hook: `hook-${at}`,
    pending: at,
    oldestMs: at === 7 ? 60_000 : 1_000,
  }));
  const pending = samplesOf(new HookMetrics(), 'waymark_webhook_pending', queues);
  assert.equal(pending.length, 201);
  assert.deepEqual(pending[0], { labels: { hook: 'hook-4999' }, value: 4_999 });
  assert.equal(pending.at(-1)?.labels.hook, 'others');
  const sum = pending.reduce((total, { value }) => total + value, 0);
  assert.equal(sum, (4_999 * 5_000) / 2);
  const oldest = samplesOf(new HookMetrics(), 'waymark_webhook_oldest_seconds', queues);
  assert.equal(oldest.at(-1)?.value, 60);
});
