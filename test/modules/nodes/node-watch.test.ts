import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hearingSince, reportSilentNodes } from '../../../src/modules/nodes/node-watch.ts';
import { silentLog } from '../../../src/core/report/log.ts';
import type { Emit } from '../../../src/core/log/events/emit.ts';
import { scratchStore } from '../../core/log/scratch.ts';
import { nodesPart } from '../../../src/modules/nodes/log/node-states.ts';

test('a silent node is reported once, and again after it has come back', async (t) => {
  const nodes = (await scratchStore(t)).part(nodesPart);
  const reported: unknown[] = [];
  const emit: Emit = (type, data) => {
    reported.push([type, data]);
    return Promise.resolve();
  };
  let nowMs = Date.UTC(2026, 0, 1);
  const parts = { nodes, emit, log: silentLog, now: () => nowMs, hasKey: () => true };
  const look = () => reportSilentNodes({ ...parts, sinceMs: 0, reports: true });
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

test('a machine of a cluster is reported by one of them, and forgotten after a week', async (t) => {
  const nodes = (await scratchStore(t)).part(nodesPart);
  const reported: string[] = [];
  const emit: Emit = (_type, data) => {
    reported.push((data as { readonly id: string }).id);
    return Promise.resolve();
  };
  const startMs = Date.UTC(2026, 0, 1);
  let nowMs = startMs;
  const parts = { nodes, emit, log: silentLog, now: () => nowMs, hasKey: () => true };
  await nodes.put({
    ...{ name: 'web-2', role: 'central', version: '1', protocol: 1, seq: 3 },
    ...{ outbox: { waiting: 0, refused: 0 }, clock_offset_ms: 0, silent: false },
    last_contact: new Date(nowMs).toISOString(),
    cluster: { member: 'm', position: 9 },
  });
  nowMs += 100_000;
  await reportSilentNodes({ ...parts, sinceMs: nowMs - 50_000, reports: true });
  assert.equal(nodes.get('web-2')?.silent, false, 'this node has heard nothing for 50 s only');
  await reportSilentNodes({ ...parts, sinceMs: startMs, reports: false });
  assert.equal(nodes.get('web-2')?.silent, true);
  assert.deepEqual(reported, []);
  nowMs += 7 * 86_400_000;
  await reportSilentNodes({ ...parts, sinceMs: startMs, reports: true });
  assert.deepEqual(nodes.all(), []);
});

test('nobody is reported because the clock was moved, or the process was stopped', async (t) => {
  const nodes = (await scratchStore(t)).part(nodesPart);
  const reported: string[] = [];
  const emit: Emit = (_type, data) => {
    reported.push((data as { readonly message: string }).message);
    return Promise.resolve();
  };
  let nowMs = Date.UTC(2026, 0, 1);
  const now = () => nowMs;
  const couldHear = hearingSince(now);
  const parts = { nodes, emit, log: silentLog, now, hasKey: () => true, reports: true };
  const look = () => reportSilentNodes({ ...parts, sinceMs: couldHear() });
  const report = () =>
    nodes.put({
      ...{ name: 'shop-7', role: 'counter', version: '1', protocol: 1, seq: 3 },
      ...{ outbox: { waiting: 0, refused: 0 }, clock_offset_ms: 0, silent: false },
      last_contact: new Date(nowMs).toISOString(),
    });
  await report();
  for (const jumpMs of [3_600_000, -7_200_000]) {
    nowMs += jumpMs;
    await look();
    for (let looks = 0; looks < 5; looks += 1) {
      nowMs += 10_000;
      await look();
    }
    assert.deepEqual(reported, [], `after ${jumpMs} ms`);
  }
  nowMs += 10_000;
  await look();
  assert.equal(reported.length, 1, 'it has been silent for a minute since');
});

test('a node whose key is revoked is removed when it is silent, and not reported', async (t) => {
  const nodes = (await scratchStore(t)).part(nodesPart);
  const emit: Emit = () => assert.fail('it is no error');
  const startMs = Date.UTC(2026, 0, 1);
  for (const name of ['shop-7', 'shop-8']) {
    await nodes.put({
      ...{ name, role: 'counter', version: '1', protocol: 1, seq: 3 },
      ...{ outbox: { waiting: 0, refused: 0 }, clock_offset_ms: 0, silent: name === 'shop-8' },
      last_contact: new Date(startMs).toISOString(),
    });
  }
  const parts = { nodes, emit, log: silentLog, sinceMs: 0, reports: true };
  const look = (afterMs: number) =>
    reportSilentNodes({
      ...{ ...parts, now: () => startMs + afterMs },
      hasKey: (name) => name === 'shop-8',
    });
  await look(59_000);
  assert.equal(nodes.all().length, 2);
  await look(61_000);
  assert.deepEqual(
    nodes.all().map(({ name }) => name),
    ['shop-8'],
  );
});
