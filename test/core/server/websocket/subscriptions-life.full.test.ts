import assert from 'node:assert/strict';
import { once } from 'node:events';
import { join } from 'node:path';
import { suite, test, type TestContext } from 'node:test';
import { WebSocket } from 'ws';
import { postOperation, startSite } from '../../../harness.ts';
import { serverFolder, startServed, type Served } from '../../../process.ts';
import { startWriter } from '../../log/scratch.ts';
import { insertPage, subscribe } from '../../../modules/status/subscriber.ts';
import { closing } from './socket-rig.ts';

function range(first: number, last: number): readonly number[] {
  return Array.from({ length: last - first + 1 }, (_, at) => first + at);
}

/** Opens a websocket to a server in its own process. */
async function connect(t: TestContext, url: string, apikey: string): Promise<WebSocket> {
  const websocket = new WebSocket(`${url.replace('http', 'ws')}/svc1/ws`, { headers: { apikey } });
  t.after(() => {
    websocket.terminate();
  });
  // The test may kill the server.
  websocket.on('error', () => undefined);
  await once(websocket, 'open');
  return websocket;
}

suite('a subscriber that reconnects with the seq of its last packet', () => {
  test('continues where it was after its connection was cut', async (t) => {
    const site = await startSite(t);
    const writer = await site.socket(site.adminKey);
    const before = (await site.call('svc1.server.status', {})).data.seq as number;
    const pages = range(1, 500).map((n) => insertPage(writer, { path: `/${n}` }));
    const got: number[] = [];
    for (const cutAfter of [1, 7, 64, 65, 130]) {
      const socket = await site.socket(site.adminKey);
      const from = got.at(-1) ?? before;
      const subscriber = await subscribe(socket, { from_seq: from });
      // More packets may have arrived than requested: wait for the missing ones only.
      const left = before + pages.length - from;
      await subscriber.until(({ length }) => length >= Math.min(cutAfter, left));
      got.push(...subscriber.seqs());
      socket.websocket.terminate();
    }
    await Promise.all(pages);
    const { seq: last } = await insertPage(writer, { path: '/last' });
    const subscriber = await subscribe(writer, { from_seq: got.at(-1) ?? 0 });
    await subscriber.until((packets) => packets.at(-1)?.seq === last);
    assert.deepEqual([...got, ...subscriber.seqs()], range(before + 1, last));
  });

  test('continues where it was after a stop, a kill and writes in between', async (t) => {
    const { folder, iniFile } = await serverFolder(t, '[log]\naccess = no\n');
    let served = await startServed(t, iniFile);
    const { adminKey: apikey } = served;
    const got: number[] = [];
    /** Reads and writes until the server stops, in the middle of both. */
    const followUntilGone = async (signal: NodeJS.Signals): Promise<readonly [number, string]> => {
      const websocket = await connect(t, served.url, apikey);
      const closed = closing(websocket);
      const from = got.at(-1);
      const subscriber = await subscribe({ websocket }, from ? { from_seq: from } : {});
      const writing = writeUntilGone(served, apikey);
      await subscriber.until(({ length }) => length >= 100);
      served.child.kill(signal);
      const reason = await closed;
      await Promise.all([writing, served.closed]);
      got.push(...subscriber.seqs());
      return reason;
    };

    assert.deepEqual(await followUntilGone('SIGTERM'), [1001, 'The server is stopping.']);
    const writer = startWriter(t, [join(folder, 'data'), '50']);
    writer.child.stdout?.resume();
    assert.equal(await writer.closed, 0);
    served = await startServed(t, iniFile, { first: false });
    assert.equal((await followUntilGone('SIGKILL'))[0], 1006);

    served = await startServed(t, iniFile, { first: false });
    const websocket = await connect(t, served.url, apikey);
    const subscriber = await subscribe({ websocket }, { from_seq: got.at(-1) ?? 0 });
    const { data } = await postOperation(
      served.url,
      'svc1.userinterface.insert',
      { path: '/last', kind: 'content', content: 'x' },
      { apikey },
    );
    await subscriber.until((packets) => packets.at(-1)?.seq === data.seq);
    const all = [...got, ...subscriber.seqs()];
    assert.deepEqual(all, range(all[0] ?? 0, data.seq));
    assert.ok(all.length > 200);
  });
});

/** Inserts pages in batches until the server stops answering. */
async function writeUntilGone({ url }: Served, apikey: string): Promise<void> {
  await Promise.all(
    range(1, 8).map(async (lane) => {
      for (let n = 0; ; n += 1) {
        const page = { path: `/${lane}/${n}`, kind: 'content', content: 'x' };
        try {
          await postOperation(url, 'svc1.userinterface.insert', page, { apikey });
        } catch {
          return;
        }
      }
    }),
  );
}

test('a subscriber that does not read does not delay a stop', async (t) => {
  const site = await startSite(t);
  const socket = await site.socket(site.adminKey);
  await subscribe(socket);
  socket.websocket.pause();
  const content = 'x'.repeat(1 << 20);
  for (const n of range(1, 12)) await insertPage(site, { path: `/${n}`, content });
  await site.waymark.stop(50);
  assert.ok(!site.logged().includes('"level":50'), site.logged());
});
