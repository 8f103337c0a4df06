import { families } from '../../../src/families.ts';
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { uuidv7 } from 'uuidv7';
import { createHostClient } from '../../../src/modules/hosts/host-client.ts';
import { TableHosts } from '../../../src/modules/hosts/hosts.ts';
import { silentLog } from '../../../src/core/report/log.ts';
import { createConnector, createDialler } from '../../../src/core/outbound/dialler.ts';
import { openStore } from '../../../src/core/log/open.ts';
import type { Store } from '../../../src/core/log/store.ts';
import { temporaryFolder, writeFiles, type Cleaning } from '../../folder.ts';
import { readTestConfig, startSite } from '../../harness.ts';
import { commit } from '../../core/log/scratch.ts';
import { MemoryLog } from '../../core/log/shared/memory-log.ts';
import { testTasks } from '../../core/background/test-tasks.ts';
import { joining } from '../../../src/modules/cluster/log/join.ts';

interface TestNode {
  readonly store: Store;
  readonly hosts: TableHosts;
  /** Stops to follow. */
  readonly stop: () => Promise<void>;
}

/** A node of a cluster that follows the data hosts of its tables. */
async function startNode(t: Cleaning, log: MemoryLog): Promise<TestNode> {
  const folder = await temporaryFolder(t);
  const ini = '[server]\nlisten = 127.0.0.1:0\n[fetch]\nallow_private = 127.0.0.0/8, ::1/128\n';
  await writeFiles(folder, { 'server.ini': ini });
  const { fetch } = await readTestConfig(join(folder, 'server.ini'));
  const joinLog = joining({
    open: () => Promise.resolve(log.open()),
    notice: () => Promise.resolve(),
    failed: () => undefined,
  });
  const [now, newId] = [Date.now, uuidv7];
  const store = await openStore({
    families,
    folder: join(folder, 'data'),
    now,
    newId,
    join: joinLog,
  });
  const dialler = createDialler(fetch);
  const client = createHostClient({ dialler, connect: createConnector(fetch), via: 'test' });
  const tasks = testTasks();
  const parts = { store, newId, now, tasks, log: silentLog, client: () => client };
  const hosts = new TableHosts({ ...parts, keyFileOf: () => undefined });
  t.after(async () => {
    await tasks.stop();
    await Promise.all([dialler.close(), store.close()]);
  });
  const { stop } = tasks.start(hosts.task);
  return { store, hosts, stop };
}

/** Resolves when a node follows the host of its table, and knows where that is. */
async function untilConnected({ store, hosts }: TestNode): Promise<void> {
  for (let seq = 0; hosts.states()[0]?.state !== 'connected';) {
    await store.waitForRows(seq, AbortSignal.timeout(20));
    seq = store.seq();
  }
}

/** The seqs, at their host, of the changes that have raised events, once there are as many. */
async function changesSeen({ store }: TestNode, count: number): Promise<readonly unknown[]> {
  const seen: unknown[] = [];
  for (let seq = 0; seen.length < count;) {
    await store.waitForRows(seq, AbortSignal.timeout(60_000));
    for (; seq < store.seq(); seq += 1) {
      const { family, data } = store.change(seq + 1) ?? assert.fail();
      const event = data.data as { readonly seq: number } | undefined;
      if (family === 'event') seen.push(event?.seq);
    }
  }
  return seen;
}

test('one node of a cluster follows a data host, and another one goes on', async (t) => {
  const host = await startSite(t);
  const open = { read: ['anonymous'], insert: ['anonymous'] };
  const schema = { type: 'object', properties: { sku: { type: 'string' } } };
  await host.call('svc1.table.insert', { name: 'products', schema, key: 'sku', ...open });
  const insert = async (sku: string): Promise<unknown> =>
    (await host.call('svc1.record.insert', { table: 'products', sku })).data.seq;
  const log = new MemoryLog();
  const one = await startNode(t, log);
  const url = `${host.url}/svc1/ws`;
  const data = { name: 'products', host: url };
  await commit(one.store, { family: 'table', id: uuidv7(), action: 'insert', data });
  await untilConnected(one);
  const other = await startNode(t, log);
  const first = await insert('A');
  assert.deepEqual(await changesSeen(other, 1), [first]);
  const [state] = other.hosts.states();
  assert.deepEqual([state?.state, state?.host], ['other_node', url]);

  await one.stop();
  const second = await insert('B');
  assert.deepEqual(await changesSeen(other, 2), [first, second]);
  await untilConnected(other);
});
