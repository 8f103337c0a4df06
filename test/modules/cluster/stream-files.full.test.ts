import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { suite, test } from 'node:test';
import type { SharedFiles } from '../../../src/core/log/shared/shared-log.ts';
import { silentLog } from '../../../src/core/report/log.ts';
import { callJetStream } from '../../../src/modules/cluster/jetstream-api.ts';
import { ReconnectingNats } from '../../../src/modules/cluster/nats-connection.ts';
import { streamInfo } from '../../../src/modules/cluster/stream.ts';
import { until } from './nats.ts';
import { needsNats, startLog } from './rig.ts';

const never = new AbortController().signal;

async function putFile(files: SharedFiles, content: Buffer): Promise<string> {
  const sha256 = createHash('sha256').update(content).digest('hex');
  await files.put(sha256, content.length, async (first, length) =>
    Promise.resolve(content.subarray(first, first + length)),
  );
  return sha256;
}

async function getFile(files: SharedFiles, sha256: string, from = 0) {
  const found = await files.get(sha256, from, never);
  if (found === undefined) return undefined;
  return { first: found.first, content: await buffer(found.chunks) };
}

suite('the files that the nodes of a cluster share', needsNats, () => {
  test('are read from a byte on, listed, and removed by their age', async (t) => {
    const rig = await startLog(t, 1);
    const [{ files }, { files: others }] = [await rig.open(), await rig.open()];
    assert.deepEqual(await files.list(), []);
    assert.equal(await getFile(files, '0'.repeat(64)), undefined);
    await files.remove('0'.repeat(64), Date.now());

    const content = randomBytes(1_500_000);
    const [one, same] = await Promise.all([putFile(files, content), putFile(others, content)]);
    assert.equal(one, same);
    const empty = await putFile(others, Buffer.alloc(0));
    assert.deepEqual(
      (await files.list()).toSorted((a, b) => a.sha256.localeCompare(b.sha256)),
      [one, empty].sort().map((sha256) => ({ sha256, isWhole: true })),
    );
    assert.deepEqual(await getFile(others, one), { first: 0, content });
    const part = await getFile(files, one, 1_100_000);
    assert.equal(part?.first, 1_048_576);
    assert.deepEqual(part.content, content.subarray(1_048_576));
    assert.deepEqual(await getFile(files, empty), { first: 0, content: Buffer.alloc(0) });

    await files.remove(one, Date.now() - 60_000);
    assert.deepEqual(await getFile(files, one), { first: 0, content });
    await files.remove(one, Date.now() + 60_000);
    assert.equal(await getFile(others, one), undefined);
    assert.deepEqual(await others.list(), [{ sha256: empty, isWhole: true }]);
  });

  test('tell how many copies they have, and what is wrong with these', async (t) => {
    const rig = await startLog(t, 3);
    const { files } = await rig.open();
    assert.equal(await files.state(), undefined);
    await putFile(files, randomBytes(700_000));
    const whole = await until(async () => {
      const state = await files.state();
      assert.equal(state?.problem, undefined);
      return state;
    });
    assert.ok(whole !== undefined && whole.bytes > 700_000);
    const { stream, messages, copies, log_copies: logCopies, servers } = whole;
    assert.deepEqual([stream, messages, copies, logCopies], ['waymark-files', 3, 3, 3]);
    assert.deepEqual(servers.map(({ name }) => name).sort(), ['n1', 'n2', 'n3']);

    const lost = rig.servers.find(({ name }) => name === servers[1]?.name) ?? assert.fail();
    await lost.kill();
    await until(async () => {
      const state = await files.state();
      assert.match(state?.problem ?? '', new RegExp(`^Not all servers .*${lost.name}`));
    });
    await lost.start();
    const nats = new ReconnectingNats(rig.settings, { log: silentLog });
    t.after(() => nats.close());
    await nats.connection(10_000);
    await until(async () => {
      const { config } = await streamInfo(nats, stream);
      await callJetStream(nats, `STREAM.UPDATE.${stream}`, { ...config, num_replicas: 1 });
    });
    await until(async () => {
      const state = await files.state();
      assert.equal(state?.copies, 1);
      assert.match(
        state.problem ?? '',
        /^The stream waymark-files has 1 copy of each file, and that of the log 3: .* --replicas 3$/,
      );
    });
  });

  test('of an upload that has ended early are no whole file', async (t) => {
    const rig = await startLog(t, 1);
    const { files } = await rig.open();
    const content = randomBytes(3_000_000);
    const cut = files.put('a'.repeat(64), content.length, async (first, length) => {
      if (first > 2_000_000) throw new RangeError('the disk cannot be read');
      return Promise.resolve(content.subarray(first, first + length));
    });
    await assert.rejects(cut, { name: 'RangeError' });
    assert.deepEqual(await files.list(), [{ sha256: 'a'.repeat(64), isWhole: false }]);
    assert.equal(await getFile(files, 'a'.repeat(64)), undefined);
    await files.remove('a'.repeat(64), Date.now() + 60_000);
    assert.deepEqual(await files.list(), []);
  });
});
