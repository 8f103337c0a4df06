import assert from 'node:assert/strict';
import { test } from 'node:test';
import { reportSilentNodes } from '../../src/nodes/silence.ts';
import { silentLog } from '../../src/observability/log.ts';
import type { Emit } from '../../src/store/emit.ts';
import { scratchStore } from '../store/scratch.ts';

test('a silent node is reported once, and again after it has come back', async (t) => {
  const { nodes } = await scratchStore(t);
  const reported: unknown[] = [];
  const emit: Emit = (type, data) => {
    reported.push([type, data]);
    return Promise.resolve();
  };
  let nowMs = Date.UTC(2026, 0, 1);
  const look = () => reportSilentNodes({ nodes, emit, log: silentLog, now: () => nowMs });
  const report = () =>
    nodes.put({
      ...{ name: 'shop-7', role: 'counter', version: '1', protocol: 1, seq: 3 },
      ...{ outbox: { waiting: 0, refused: 0 }, clock_offset_ms: 0, silent: false },
      last_contact: new Date(nowMs).toISOString(),
    });
  await report();
  nowMs += 59_000;
  await look();
  assert.deepEqual(reported, []);
  nowMs += 2_000;
  await look();
  await look();
  const message = 'The node shop-7 has not reported since 2026-01-01T00:00:00.000Z.';
  assert.deepEqual(reported, [['error.detected', { code: 'node_silent', message, id: 'shop-7' }]]);
  await report();
  nowMs += 61_000;
  await look();
  assert.equal(reported.length, 2);
});
