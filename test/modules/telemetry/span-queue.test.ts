import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { Span } from '@opentelemetry/api';
import type { ReadableSpan, SpanExporter, SpanProcessor } from '@opentelemetry/sdk-trace';
import { queuedSpansMax } from '../../../src/modules/telemetry/limits.ts';
import { SpanCounts, SpanQueue } from '../../../src/modules/telemetry/span-queue.ts';
import { silentLog } from '../../../src/core/report/log.ts';

type Done = Parameters<SpanExporter['export']>[1];

/** A queue in front of a processor that holds what it gets. */
function rig() {
  let nowMs = 0;
  const lines: object[] = [];
  const log = { ...silentLog, warn: (fields: object) => void lines.push(fields) };
  const counts = new SpanCounts({ log, now: () => nowMs });
  const queue = new SpanQueue(counts);
  const held: ReadableSpan[] = [];
  const exports: Done[] = [];
  const none = (): Promise<void> => Promise.resolve();
  const processor = queue.inFrontOf({
    ...{ onStart: () => undefined, forceFlush: none, shutdown: none },
    onEnd: (span) => void held.push(span),
  } satisfies SpanProcessor);
  const exporter = queue.counted({
    export: (_, done) => void exports.push(done),
    shutdown: none,
  });
  return {
    ...{ lines, held, exports, queue, processor },
    later: () => (nowMs += 60_000),
    pass: (spans: number) => {
      for (let at = 0; at < spans; at += 1) {
        processor.onStart({} as Span & ReadableSpan, {} as never);
        processor.onEnd({} as ReadableSpan);
      }
    },
    exportAll: (done: Done = () => undefined) => {
      exporter.export(held.splice(0), done);
    },
    counted: () => counts.metrics().flatMap(({ samples }) => samples.map(({ value }) => value)),
  };
}

suite('spans for a collector', () => {
  test('wait in a bounded queue; the rest is counted and said once a minute', () => {
    const { pass, held, counted, lines, later } = rig();
    pass(queuedSpansMax + 7);
    assert.equal(held.length, queuedSpansMax);
    assert.deepEqual(counted(), [0, 7]);
    assert.equal(lines.length, 1);
    later();
    pass(2);
    assert.equal(lines.length, 2);
    assert.match(JSON.stringify(lines[1]), /"spans":7/);
  });

  test('make room once they are sent, whether the collector takes them or not', () => {
    const { pass, exportAll, exports, held, counted } = rig();
    pass(queuedSpansMax);
    exportAll();
    exports[0]?.({ code: 0 });
    pass(queuedSpansMax);
    assert.equal(held.length, queuedSpansMax);
    exportAll();
    exports[1]?.({ code: 1, error: new Error('no') });
    // A late second word about them does not count.
    exports[1]?.({ code: 0 });
    assert.deepEqual(counted(), [queuedSpansMax, queuedSpansMax]);
  });

  test('count as dropped without an answer in time', (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const { pass, exportAll, counted } = rig();
    pass(3);
    const results: number[] = [];
    exportAll(({ code }) => results.push(code));
    t.mock.timers.tick(5_000);
    assert.deepEqual(results, [1]);
    assert.deepEqual(counted(), [0, 3]);
  });

  test('are waited for until all have ended; later ones are dropped', async () => {
    const { queue, processor, pass, counted } = rig();
    await queue.settled();
    processor.onStart({} as Span & ReadableSpan, {} as never);
    const settled = queue.settled();
    processor.onEnd({} as ReadableSpan);
    await settled;
    await processor.shutdown();
    pass(1);
    assert.deepEqual(counted(), [0, 1]);
  });
});
