import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, type Socket, connect, createServer } from 'node:net';
import { type TestContext, suite, test } from 'node:test';
import { EventLoop } from '../../../src/core/fair/turns.ts';
import { ReadTurns, readingMs } from '../../../src/core/server/read-turns.ts';
import type { ClientAddress } from '../../../src/core/values/network/peer.ts';

const clients = 60;

/** Sockets of a server and their clients; each read takes a quarter of what a turn may read. */
async function connected(t: TestContext, addressOf: (at: number) => ClientAddress) {
  let nowMs = 0;
  const clock = (): number => nowMs;
  const turns = new ReadTurns(new EventLoop(clock), clock);
  const received: string[] = [];
  const order: number[] = [];
  const ended: number[] = [];
  let [inTurn, most, accepted] = [0, 0, 0];
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    const at = accepted;
    accepted += 1;
    received[at] = '';
    const peer = { address: addressOf(at) };
    socket.on('error', () => undefined).on('end', () => ended.push(at));
    socket.on('data', (bytes: Buffer) => {
      if (turns.isLater(socket, peer, bytes)) return;
      nowMs += readingMs / 4;
      inTurn += 1;
      received[at] = `${received[at]}${bytes.toString()}`;
      order.push(at);
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const sockets: Socket[] = [];
  t.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  for (let at = 0; at < clients; at += 1) {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    sockets.push(socket);
    await once(socket, 'connect');
  }
  /** Waits, turn by turn, until something is so. */
  const until = async (isSo: () => boolean): Promise<void> => {
    while (!isSo()) {
      await new Promise(setImmediate);
      most = Math.max(most, inTurn);
      inTurn = 0;
    }
  };
  return { sockets, received, order, ended, until, most: () => most };
}

suite('what many connections send at the same time', () => {
  test('is read in several turns of the event loop, in order, to the end', async (t) => {
    const rig = await connected(t, () => '192.0.2.1');
    for (const [at, socket] of rig.sockets.entries()) socket.write(`${at} begins. `);
    for (const [at, socket] of rig.sockets.entries()) socket.write(`${at} goes on. `);
    for (const [at, socket] of rig.sockets.entries()) socket.end(`${at} ends.`);
    await rig.until(() => rig.ended.length === clients);
    assert.deepEqual(
      rig.received,
      rig.sockets.map((_, at) => `${at} begins. ${at} goes on. ${at} ends.`),
    );
    // What is read until the turn is long, and then a piece of work in its own turn.
    assert.ok(rig.most() <= 8, `${rig.most()} reads in one turn`);
  });

  test('is read in turns of the clients: one with few connections is soon next', async (t) => {
    const rig = await connected(t, (at) => (at === clients - 1 ? '203.0.113.1' : '192.0.2.1'));
    for (const socket of rig.sockets) socket.write('all');
    await rig.until(() => rig.order.length === clients);
    const place = rig.order.indexOf(clients - 1);
    assert.ok(place < clients / 2, `read as number ${place}`);
  });

  test('is dropped with a connection that closes before its turn', async (t) => {
    const rig = await connected(t, () => '192.0.2.1');
    for (const socket of rig.sockets) socket.write('all');
    const [first, ...others] = rig.sockets.toReversed();
    await rig.until(() => rig.order.length > 0);
    first?.resetAndDestroy();
    await rig.until(() => rig.received.filter((text) => text === 'all').length >= others.length);
    assert.ok(rig.order.length <= clients);
  });
});
