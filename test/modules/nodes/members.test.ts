import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listNodes, reportNode } from '../../../src/modules/nodes/operations/reports.ts';
import type { Call } from '../../../src/core/operations/operation.ts';
import type { JsonObject } from '../../../src/core/values/json/json.ts';
import { Members } from '../../../src/modules/nodes/members.ts';
import { silentLog } from '../../../src/core/report/log.ts';
import type { Store } from '../../../src/core/log/store.ts';
import { MemoryLog } from '../../core/log/shared/memory-log.ts';
import { openNode } from '../../core/log/shared/open-node.ts';
import { testTasks } from '../../core/background/test-tasks.ts';
import { deliveriesPart } from '../../../src/modules/webhooks/log/delivery-log.ts';
import { nodesPart } from '../../../src/modules/nodes/log/node-states.ts';

const now = (): number => Date.UTC(2026, 0, 2);

function membersOf(store: Store, name: string, warned: string[] = []): Members {
  const { shared = assert.fail() } = store;
  const node = { name, role: 'central' } as const;
  const warn = (_fields: object, message: string): number => warned.push(message);
  return new Members({ store, shared, node, version: '1', now, log: { ...silentLog, warn } });
}

async function listed(store: Store, name: string): Promise<readonly JsonObject[]> {
  const node = { name, role: 'central' } as const;
  const run = listNodes.run({ store, node, now, log: silentLog });
  const result = await run({}, {} as Call);
  return (result as unknown as { data: { rows: readonly JsonObject[] } }).data.rows;
}

test('each machine of a cluster lists all of them, and the followers of all', async (t) => {
  const log = new MemoryLog();
  const [one, other] = [await openNode(t, log), await openNode(t, log)];
  const follower = {
    ...{ name: 'shop-7', role: 'counter', version: '1', protocol: 1, seq: 0 },
    ...{ outbox: { waiting: 2, refused: 0 }, clock_offset_ms: 5, silent: false },
  };
  await one
    .part(nodesPart)
    .put({ ...follower, last_contact: '2026-01-01T00:00:00.000Z', via: 'web-1' });
  const members = [membersOf(one, 'web-1'), membersOf(other, 'web-2')];
  await one.part(deliveriesPart).begin();
  await other.shared?.catchUp();
  const running = members.map((one) => testTasks().start(one.task));
  await Promise.all(running.map((one) => one.stop()));
  for (const [store, name] of [
    [one, 'web-1'],
    [other, 'web-2'],
  ] as const) {
    const rows = await listed(store, name);
    const told = rows.map((row) => [row.name, (row.cluster as JsonObject | undefined)?.tasks]);
    assert.deepEqual(told, [
      ['shop-7', undefined],
      ['web-1', ['webhooks']],
      ['web-2', []],
    ]);
    assert.deepEqual([rows[0]?.via, rows[0]?.outbox], ['web-1', follower.outbox]);
  }

  // An older report that comes late changes nothing.
  await other
    .part(nodesPart)
    .put({ ...follower, last_contact: '2026-01-01T00:01:00.000Z', via: 'web-2' });
  const again = [membersOf(other, 'web-2'), membersOf(one, 'web-1')];
  const later = again.map((one) => testTasks().start(one.task));
  await Promise.all(later.map((one) => one.stop()));
  assert.equal(one.part(nodesPart).get('shop-7')?.via, 'web-2');
  assert.equal(other.part(nodesPart).get('shop-7')?.via, 'web-2');
  await one.part(deliveriesPart).end();
});

test('two machines with the same name are reported, and other messages are ignored', async (t) => {
  const log = new MemoryLog();
  const [one, other] = [await openNode(t, log), await openNode(t, log)];
  const warned: string[] = [];
  const members = [membersOf(one, 'web-1', warned), membersOf(other, 'web-1')];
  const running = members.map((one) => testTasks().start(one.task));
  for (const text of ['', '{}', '{"member":1,"followers":[]}', '{"member":{},"followers":[1]}']) {
    await other.shared?.broadcast(Buffer.from(text));
  }
  await Promise.all(running.map((one) => one.stop()));
  assert.equal(warned.length, 1);
  assert.match(warned[0] ?? '', /^Two machines of the cluster have the name web-1: set another/);
  assert.deepEqual(
    one
      .part(nodesPart)
      .all()
      .map(({ name }) => name),
    ['web-1'],
  );
});

test('a machine that runs with a copy of the data folder is told, and a restart is not', async (t) => {
  const one = await openNode(t, new MemoryLog());
  const warned: string[] = [];
  const running = testTasks().start(membersOf(one, 'web-1', warned).task);
  // A process that replaces another one overlaps with it for a moment.
  for (const expected of [[], [], [/^Another machine of the cluster runs with a copy of this/]]) {
    const next = testTasks().start(membersOf(one, 'web-1').task);
    await next.stop();
    assert.equal(warned.length, expected.length);
    for (const [at, pattern] of expected.entries()) assert.match(warned[at] ?? '', pattern);
  }
  await running.stop();
});

test('a node that runs on two machines is told in its state', async (t) => {
  const one = await openNode(t, new MemoryLog());
  const parts = {
    store: one,
    node: { name: 'web-1', role: 'central' },
    now,
    log: silentLog,
  } as const;
  await one.commit('test', () => ({
    drafts: [
      { family: 'key', id: 'k', action: 'insert', data: { hash: 'h', scopes: [], node: 'shop-7' } },
    ],
    answer: () => undefined,
  }));
  const call = { caller: { keyId: 'k' } } as unknown as Call;
  const report = async (process: string): Promise<unknown> => {
    const run = reportNode.run(parts);
    const counts = { seq: 0, now: now(), waiting: 0, refused: 0 };
    await run({ node: 'shop-7', role: 'counter', version: '1', process, ...counts }, call);
    return one.part(nodesPart).get('shop-7')?.problem;
  };
  for (const process of ['first', 'restarted', 'restarted']) {
    assert.equal(await report(process), undefined);
  }
  assert.match(String(await report('first')), /^Two machines run as the node shop-7/);
  assert.match(String(await report('restarted')), /^Two machines/);
  assert.equal(await report('restarted'), undefined, 'one of them was stopped');
});
