import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { temporaryFolder, writeFiles, type Cleaning } from '../../folder.ts';
import { postOperation, type Answer } from '../../harness.ts';
import { runWaymark, startServed, type Served } from '../../process.ts';
import { startNats, until } from './nats.ts';
import { needsNats } from './rig.ts';

/** A folder with the ini file of a node. */
async function nodeFolder(t: Cleaning, name: string, more: string): Promise<string> {
  const folder = await temporaryFolder(t);
  const ini =
    `[server]\nlisten = 127.0.0.1:0\ndata = data\n[log]\naccess = no\n` +
    `[node]\nrole = central\nname = ${name}\n[webhook]\nallow_private = 127.0.0.0/8\n${more}`;
  await writeFiles(folder, { 'server.ini': ini });
  return folder;
}

suite('the nodes of a cluster', needsNats, () => {
  test('begin with the history of a machine, and share all writes', async (t) => {
    const [nats = assert.fail()] = await startNats(t);
    const cluster = `[cluster]\nservers = ${nats.url}\n`;
    const folder = await nodeFolder(t, 'a', '');
    const iniFile = join(folder, 'server.ini');
    const env = { XDG_DATA_HOME: folder };
    const alone = await startServed(t, iniFile, { env });
    const { adminKey: apikey } = alone;
    const call = (at: Served, name: string, v: object, vk?: string): Promise<Answer> =>
      postOperation(at.url, name, v, { apikey, ...(vk !== undefined && { vk }) });
    const page = { origin: '*', path: '/a', kind: 'content', content: 'first' };
    const { data } = await call(alone, 'svc1.userinterface.insert', page, 'page a');
    const id = data?.id as string;
    alone.child.kill('SIGTERM');
    await alone.closed;

    const text = `[server]\nlisten = 127.0.0.1:0\ndata = data\n[node]\nrole = central\nname = a\n`;
    const hooks = '[webhook]\nallow_private = 127.0.0.0/8\n';
    await writeFiles(folder, { 'server.ini': text + hooks + cluster });
    const early = await runWaymark(['serve', '--config', iniFile]);
    assert.match(early.err, /waymark cluster init/);
    const made = await runWaymark(['cluster', 'init', '--config', iniFile]);
    assert.equal(made.code, 0, made.err);
    const first = await startServed(t, iniFile, { first: false, env });
    const other = await nodeFolder(t, 'b', cluster);
    const second = await startServed(t, join(other, 'server.ini'), {
      first: false,
      env: { XDG_DATA_HOME: other },
    });

    const page2 = await fetch(`${second.url}/a`);
    assert.equal(await page2.text(), 'first');
    const again = await call(second, 'svc1.userinterface.insert', page, 'page a');
    assert.equal(again.data?.id, id, 'the vk of the single machine is known');
    const edit = await call(second, 'svc1.userinterface.edit', { id, content: 'second' });
    assert.equal(edit.error, undefined);
    const late = { id, content: 'third', if_seq: data?.seq as number };
    const refused = await call(first, 'svc1.userinterface.edit', late);
    assert.equal(refused.error?.code, 'precondition_failed');
    assert.equal(await (await fetch(`${first.url}/a`)).text(), 'second');
    const { data: status } = await call(second, 'svc1.server.status', {});
    assert.equal(status?.node.cluster.connected, true);
    assert.equal(status.node.cluster.files, null, 'nobody has uploaded a file');

    await until(async () => {
      for (const at of [first, second]) {
        const { rows } = (await call(at, 'svc1.node.list', {})).data;
        assert.deepEqual(
          rows.map((row: { name: string }) => row.name),
          ['a', 'b'],
        );
      }
    });

    const receiver = createServer((_request, response) => response.writeHead(204).end());
    t.after(() => receiver.close());
    receiver.listen(0, '127.0.0.1');
    await once(receiver, 'listening');
    const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
    await call(first, 'svc1.webhook.insert', { url, event: ['a.b'] });
    for (const [at, gone, n] of [
      [first, undefined, 1],
      [second, first, 2],
    ] as const) {
      const delivered = once(receiver, 'request');
      gone?.child.kill('SIGTERM');
      await gone?.closed;
      await call(at, 'svc1.event.insert', { type: 'a.b', data: { n } });
      await delivered;
    }
    second.child.kill('SIGTERM');
    await second.closed;

    const left = await runWaymark(['cluster', 'leave', '--config', join(other, 'server.ini')]);
    assert.equal(left.code, 0, left.err);
    const digests = await Promise.all(
      [iniFile, join(other, 'server.ini')].map((file) =>
        runWaymark(['check', '--data', '--seq', String(edit.data?.seq ?? 0), '--config', file]),
      ),
    );
    assert.equal(digests[0]?.out, digests[1]?.out);
    assert.equal(digests[0]?.code, 0);
  });
});
