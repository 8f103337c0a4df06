import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { suite, test, type TestContext } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { FileSource } from '../../../src/core/http/reply.ts';
import { fileChunkBytes } from '../../../src/core/http/limits.ts';
import { copyRange, piecesAtOnceMax, quickBytesMin } from '../../../src/core/server/copy-file.ts';
import { fileLargeChunkBytes } from '../../../src/core/server/h1/file-buffers.ts';
import { MIB } from '../../../src/core/values/units.ts';

/** The server's and the client's side of a new connection; the client does not read. */
async function connection(t: TestContext): Promise<readonly [Socket, Socket]> {
  const server = createServer({ pauseOnConnect: true }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  assert.ok(address !== null && typeof address === 'object');
  const client = connect(address.port, '127.0.0.1').on('error', () => undefined);
  const [socket] = (await once(server, 'connection')) as [Socket];
  socket.on('error', () => undefined);
  t.after(() => {
    client.destroy();
    socket.destroy();
    server.close();
  });
  return [socket, client];
}

/** A file whose reads end when `go` is called. */
class HeldFile implements FileSource {
  readonly sizes: number[] = [];
  readonly #begun: (name: string) => void;
  readonly #name: string;
  readonly #ends: (() => void)[] = [];

  constructor(name: string, begun: (name: string) => void) {
    this.#name = name;
    this.#begun = begun;
  }

  async read(buffer: Buffer): Promise<number> {
    this.sizes.push(buffer.length);
    this.#begun(this.#name);
    await new Promise<void>((resolve) => this.#ends.push(resolve));
    return buffer.length;
  }

  go(): void {
    this.#ends.shift()?.();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

const range = { from: 0, to: 400 * MIB };

suite('files that are copied to clients', () => {
  test('are read few at a time, and a client that comes late has the next turn', async (t) => {
    const begun: string[] = [];
    const copies = await Promise.all(
      Array.from({ length: 3 * piecesAtOnceMax }, async () => {
        const [socket] = await connection(t);
        return { socket, file: new HeldFile('A', (name) => begun.push(name)) };
      }),
    );
    const copy = ({ socket, file }: (typeof copies)[number], address: string): Promise<number> =>
      copyRange(socket, { file, ...range, client: { keyId: undefined, address } });
    const all = copies.map((one) => copy(one, '198.51.100.1'));
    await nextTurn();
    const count = (): number => begun.length;
    assert.equal(count(), piecesAtOnceMax);
    const [socket] = await connection(t);
    const late = { socket, file: new HeldFile('B', (name) => begun.push(name)) };
    all.push(copy(late, '192.0.2.1'));
    copies[0]?.file.go();
    while (count() === piecesAtOnceMax) await nextTurn();
    assert.equal(begun[piecesAtOnceMax], 'B');
    // A copy to a connection that has closed ends with its next turn.
    for (const one of [...copies, late]) one.socket.destroy();
    let left = all.length;
    for (const one of all) void one.finally(() => (left -= 1));
    while (left > 0) {
      for (const { file } of [...copies, late]) file.go();
      await nextTurn();
    }
  });

  test('have one piece in memory for a client that does not read', async (t) => {
    const [socket, client] = await connection(t);
    const file = new HeldFile('A', () => undefined);
    const copied = copyRange(socket, { file, ...range, client: 'A' });
    // The system takes what it holds for the client; then a piece waits, and no further read.
    let reads = 0;
    while (socket.writableLength === 0 || reads !== file.sizes.length) {
      reads = file.sizes.length;
      file.go();
      for (let turns = 0; turns < 20 && socket.writableLength === 0; turns += 1) await nextTurn();
    }
    assert.ok(socket.writableLength <= fileLargeChunkBytes);
    for (let turns = 0; turns < 50; turns += 1) await nextTurn();
    assert.equal(file.sizes.length, reads);
    assert.ok(file.sizes.slice(0, 4).every((size) => size === fileChunkBytes));
    client.destroy();
    assert.ok((await copied) < range.to);
  });

  test('come in larger pieces to a client that reads quickly', async (t) => {
    const [socket, client] = await connection(t);
    client.resume();
    const file = new HeldFile('A', () => undefined);
    const to = 2 * quickBytesMin;
    const copied = copyRange(socket, { file, from: 0, to, client: 'A' });
    const over = new AbortController();
    void copied.then(() => {
      over.abort();
    });
    while (!over.signal.aborted) {
      file.go();
      await nextTurn();
    }
    assert.equal(await copied, to);
    assert.deepEqual(new Set(file.sizes).has(fileLargeChunkBytes), true);
  });
});
