import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, type Socket, connect, createServer } from 'node:net';
import { text } from 'node:stream/consumers';
import { type TestContext, suite, test } from 'node:test';
import {
  TurnWriteBatcher,
  corkedConnectionsMax,
} from '../../../../src/core/outbound/h1/turn-write-batcher.ts';

interface Pair {
  readonly server: Socket;
  /** All text that the client receives. */
  readonly got: () => Promise<string>;
}

async function pairs(t: TestContext, count: number): Promise<readonly Pair[]> {
  const listener = createServer().listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const { port } = listener.address() as AddressInfo;
  const open: Pair[] = [];
  for (let at = 0; at < count; at += 1) {
    const client = connect(port, '127.0.0.1');
    const [server] = (await once(listener, 'connection')) as [Socket];
    t.after(() => {
      client.destroy();
      server.destroy();
    });
    open.push({ server, got: () => text(client) });
  }
  listener.close();
  return open;
}

const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
const bytesWritten = ({ server }: Pair): number => server.bytesWritten - server.writableLength;

suite('corked connections', () => {
  test('write at the end of the turn of the event loop, each in the order of its writes', async (t) => {
    const batcher = new TurnWriteBatcher();
    const open = await pairs(t, 3);
    for (const { server } of open) server.write('<');
    for (const { server } of open) batcher.write(server, 'one ');
    for (const { server } of open) batcher.write(server, 'tw\u00f6 ');
    assert.deepEqual(open.map(bytesWritten), [1, 1, 1]);
    await turn();
    assert.deepEqual(open.map(bytesWritten), [9, 9, 9]);
    for (const { server } of open) {
      batcher.write(server, 'three');
      server.end('>', 'latin1');
    }
    const expected = Buffer.from('<one tw\u00f6 three>', 'latin1').toString('utf8');
    for (const { got } of open) assert.equal(await got(), expected);
  });

  test('write at once when their number reaches the limit, or on uncork', async (t) => {
    const batcher = new TurnWriteBatcher();
    const open = await pairs(t, corkedConnectionsMax + 1);
    for (const { server } of open) batcher.write(server, 'abc');
    const written = open.map(bytesWritten);
    assert.deepEqual(written, [...Array.from({ length: corkedConnectionsMax }, () => 3), 0]);
    batcher.uncork();
    assert.equal(open.at(-1)?.server.writableLength, 0);
  });

  test('still write after one of them was destroyed', async (t) => {
    const batcher = new TurnWriteBatcher();
    const [gone = assert.fail(), other = assert.fail()] = await pairs(t, 2);
    batcher.write(gone.server, 'abc');
    batcher.write(other.server, 'abc');
    gone.server.destroy();
    batcher.write(gone.server, 'def');
    await turn();
    batcher.write(other.server, 'def');
    other.server.end();
    assert.equal(await other.got(), 'abcdef');
    assert.equal(await gone.got(), '');
  });
});
