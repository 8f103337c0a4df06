import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { seriesTiers } from '../../../src/core/report/limits.ts';
import { RequestMetrics } from '../../../src/core/report/request-metrics.ts';
import { readSeries, seriesRecorder } from '../../../src/modules/status/series-recorder.ts';
import {
  CounterDifferences,
  emptySeries,
  quantileMs,
  withCounts,
  type Series,
} from '../../../src/modules/status/series.ts';
import { temporaryFolder } from '../../folder.ts';

const minuteMs = 60_000;
const counts = {
  classes: [0, 1, 0, 0, 0],
  sources: [1, 0, 0, 0],
  durations: [1, 0],
  cache: [0, 0],
  bytes: 10,
  hooks: [0, 0],
};

function after(minutes: number): Series {
  let series = emptySeries();
  for (let at = 1; at <= minutes; at += 1) {
    series = withCounts(series, { counts, bounds: [1] }, at * minuteMs);
  }
  return series;
}

suite('the time series', () => {
  test('has points of each distance, with the sums of their minutes, and keeps no more', () => {
    const { tiers } = after(200);
    assert.deepEqual(
      tiers.map(({ points }) => points.length),
      [180, 14, 4],
    );
    const bytes = tiers.map(({ points }) => points.reduce((all, one) => all + one.bytes, 0));
    assert.deepEqual(bytes, [1800, 2000, 2000]);
    assert.equal(tiers[2]?.points[0]?.bytes, 600);
    assert.equal(tiers[0]?.points.at(-1)?.time, 199 * minuteMs);
    const pointsMax = seriesTiers.reduce((all, one) => all + one.pointsMax, 0);
    assert.equal(pointsMax, 1212);
  });

  test('forgets points of a clock that was set back', () => {
    const series = withCounts(after(10), { counts, bounds: [1] }, 3 * minuteMs);
    assert.deepEqual(
      series.tiers[0]?.points.map(({ time }) => time / minuteMs),
      [0, 1, 2],
    );
  });

  test('counts what happened since the last look, and a process that has started from zero', () => {
    const [first, second] = [new RequestMetrics(), new RequestMetrics()];
    const differences = new CounterDifferences();
    first.add(200, 'disk:site', 3, 'hit', 100);
    assert.equal(differences.next([{ metrics: first.metrics() }]), undefined);
    first.add(404, 'none', 0.7, undefined, 7);
    first.add(200, 'svc1', 900, undefined, 9);
    first.add(200, 'rule:1', 3, 'miss', 1);
    const found = differences.next([{ metrics: first.metrics() }])?.counts;
    assert.ok(found !== undefined);
    assert.deepEqual(found.classes, [0, 1, 0, 1, 0]);
    assert.deepEqual(found.sources, [0, 1, 1, 1]);
    assert.deepEqual(found.cache, [0, 1]);
    assert.equal(found.bytes, 17);
    assert.equal(
      found.durations.reduce((all, one) => all + one, 0),
      2,
    );
    second.add(500, 'rule:2', 1);
    const later = differences.next([{ metrics: second.metrics() }])?.counts;
    assert.deepEqual(later?.classes, [0, 0, 0, 0, 1]);
  });

  test('tells durations by interpolation', () => {
    assert.equal(quantileMs([0, 0, 0], [0.1, 1], 0.5), null);
    assert.equal(quantileMs([10, 0, 0], [0.1, 1], 0.5), 50);
    assert.equal(quantileMs([50, 50, 0], [0.1, 1], 0.5), 100);
    assert.equal(quantileMs([0, 0, 5], [0.1, 1], 0.99), 1000);
  });

  test('is in the data folder, and goes on there after a restart', async (t) => {
    const folder = await temporaryFolder(t);
    const metrics = new RequestMetrics();
    let nowMs = 100 * minuteMs;
    const run = async (): Promise<void> => {
      const recorder = seriesRecorder({
        folder,
        gather: () => Promise.resolve([{ metrics: metrics.metrics() }]),
        now: () => nowMs,
      });
      await recorder();
      metrics.add(200, 'disk:site', 1);
      nowMs += minuteMs;
      await recorder();
    };
    await run();
    await run();
    const { tiers } = await readSeries(folder);
    const totals = tiers[0]?.points.map(({ classes }) => classes[1]);
    assert.deepEqual(totals, [1, 1]);
  });
});
