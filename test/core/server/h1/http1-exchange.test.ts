import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { type TestContext, suite, test } from 'node:test';
import { type Reply, noBody } from '../../../../src/core/http/reply.ts';
import { Connections } from '../../../../src/core/server/h1/connections.ts';
import type { Http1Exchange } from '../../../../src/core/server/h1/http1-exchange.ts';
import { createHttpServer } from '../../../../src/core/server/listening/listener.ts';
import { type RawConnection, openUsed } from '../../pipeline/raw-connection.ts';

/** A request that the test answers. */
interface Held {
  readonly exchange: Http1Exchange;
  /** The connection as the server sees it. */
  readonly socket: Socket;
}

/** A server that lets the test answer requests for `/held`, and answers others with their target. */
async function startHolding(t: TestContext) {
  const connections = new Connections({
    max: 10,
    perAddress: () => 10,
    refuse: () => assert.fail('nothing is refused here'),
    passed: () => undefined,
    now: Date.now,
  });
  const answer = (exchange: Http1Exchange): void => {
    const { url } = exchange.head;
    if (url !== '/held') void exchange.respond(replyWith(url));
    else server.emit('held', { socket: exchange.socket, exchange } satisfies Held);
  };
  const server = createHttpServer(connections, {
    answer,
    switches: () => false,
    upgrade: () => assert.fail('nothing is switched here'),
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    connections.destroyAll();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const client = await openUsed(t, { port, host: '127.0.0.1', allowHalfOpen: true }, get('/first'));
  const hold = async (request = get('/held')): Promise<Held> => {
    client.socket.write(request);
    const [held] = (await once(server, 'held')) as [Held];
    return held;
  };
  return { client, connections, hold };
}

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`;

function replyWith(content: string, fields: readonly string[] = []): Reply {
  const bytes = Buffer.from(content);
  const length = ['Content-Length', String(bytes.length)];
  return {
    status: 200,
    fields: [...length, ...fields],
    body: { kind: 'bytes', bytes },
    source: 'none',
  };
}

/**
 * Does something to a connection while a response is missing; resolves when the server has seen it.
 */
type Meanwhile = (held: Held, client: RawConnection, connections: Connections) => Promise<unknown>;

const meanwhile: Readonly<Record<string, Meanwhile>> = {
  'its client sends another request': async ({ socket }, client) => {
    client.socket.write(get('/next'));
    await once(socket, 'data');
  },
  'its client sends a part of another request': async ({ socket }, client) => {
    client.socket.write('GET /ne');
    await once(socket, 'data');
  },
  'its client ends its side': async ({ socket }, client) => {
    client.socket.end();
    await once(socket, 'end');
  },
  'its connection times out': async ({ socket }) => {
    socket.setTimeout(5);
    await once(socket, 'timeout');
  },
  'the server waits for its end': (_held, _client, connections) => {
    void connections.settled();
    return Promise.resolve();
  },
  'the server closes idle connections': (_held, _client, connections) => {
    connections.closeIdle();
    return Promise.resolve();
  },
  'an interim response is sent before it': ({ exchange }) => {
    exchange.interim(103, ['Link', '</a.css>; rel=preload']);
    return Promise.resolve();
  },
};

suite('an answer of HTTP/1.1', () => {
  test('is sent whole', async (t) => {
    const { client, connections, hold } = await startHolding(t);
    for (const content of ['one', 'two', '']) {
      const { exchange } = await hold();
      let closed = 0;
      exchange.onClose(() => (closed += 1));
      assert.deepEqual([connections.unanswered, exchange.isOver], [1, false]);
      const sent = await exchange.respond(replyWith(content));
      assert.deepEqual(sent, { bytes: content.length, cut: false });
      assert.deepEqual([closed, exchange.isSent], [1, true]);
      assert.equal((await client.answers.next()).content, content);
      assert.equal(connections.unanswered, 0);
    }
  });

  for (const [what, happens] of Object.entries(meanwhile)) {
    test(`is sent once when ${what} meanwhile`, async (t) => {
      const { client, connections, hold } = await startHolding(t);
      const held = await hold();
      let closed = 0;
      held.exchange.onClose(() => (closed += 1));
      await happens(held, client, connections);
      assert.deepEqual([connections.unanswered, closed, held.exchange.isOver], [1, 0, false]);
      await held.exchange.respond(replyWith('held'));
      const answer = await client.answers.next();
      assert.equal(answer.content, 'held');
      assert.equal(answer.ahead.length, what === 'an interim response is sent before it' ? 1 : 0);
      if (what === 'its client ends its side') {
        assert.equal(await client.answers.rest(), '');
      } else {
        const rest =
          what === 'its client sends a part of another request' ? get('/next').slice(7) : '';
        if (rest !== '') client.socket.write(rest);
        else if (what !== 'its client sends another request') client.socket.write(postNext);
        assert.equal((await client.answers.next()).content, '/next');
      }
      assert.equal(closed, 1);
      await connections.settled();
      assert.equal(connections.unanswered, 0);
    });
  }

  test('is sent even if its connection times out in the same turn of the event loop', async (t) => {
    const { client, connections, hold } = await startHolding(t);
    const { exchange, socket } = await hold();
    void exchange.respond(replyWith('held'));
    assert.equal(socket.writableCorked, 1);
    connections.handleTimeout(socket, 1_000);
    assert.equal((await client.answers.next()).content, 'held');
    assert.equal(await client.answers.rest(), '');
  });

  test('ends when its client resets the connection', async (t) => {
    const { client, connections, hold } = await startHolding(t);
    const { exchange, socket } = await hold();
    const closed = new Promise<void>((resolve) => {
      exchange.onClose(resolve);
    });
    (client.socket as Socket).resetAndDestroy();
    await closed;
    assert.deepEqual([exchange.isOver, exchange.isSent], [true, false]);
    assert.deepEqual(await exchange.respond(replyWith('late')), { bytes: 0, cut: true });
    assert.deepEqual([socket.destroyed, connections.unanswered, connections.size], [true, 0, 0]);
  });

  test('closes its connection when it is aborted', async (t) => {
    const { client, hold } = await startHolding(t);
    const { exchange } = await hold();
    exchange.destroy();
    assert.equal(await client.answers.rest(), '');
  });

  /** Replies, and what the client receives; undefined if the connection closes instead. */
  const unusual: Readonly<Record<string, readonly [Reply, string | undefined]>> = {
    'has content of unknown length': [{ ...replyWith('held'), fields: [] }, '200 held'],
    'is too long': [replyWith('x'.repeat(100_000)), `200 ${'x'.repeat(100_000)}`],
    'has an invalid header': [replyWith('held', ['X-A', 'a\r\nX-B: b']), undefined],
    'has a header without a name': [replyWith('held', ['', 'a']), undefined],
    'is a 204 with content': [{ ...replyWith('held'), status: 204 }, '204 '],
    'is a 304 with content': [{ ...replyWith('held'), status: 304 }, '304 '],
    'is a 205 without a length': [
      { status: 205, fields: [], body: noBody, source: 'none' },
      '205 ',
    ],
  };
  for (const [what, [reply, received]] of Object.entries(unusual)) {
    test(`is sent right if it ${what}`, async (t) => {
      const { client, hold } = await startHolding(t);
      const { exchange, socket } = await hold();
      socket.on('error', () => undefined);
      try {
        await exchange.respond(reply);
      } catch {
        // The reply is not valid.
        exchange.destroy();
      }
      const answer = await client.answers.next().catch(() => undefined);
      const text = answer && `${answer.statusLine.split(' ')[1]} ${answer.content}`;
      assert.equal(text, received);
    });
  }

  test('closes the connection after a response with Connection: close', async (t) => {
    const { client, hold } = await startHolding(t);
    const { exchange } = await hold();
    exchange.shouldKeepAlive = false;
    await exchange.respond(replyWith('held'));
    const { fields } = await client.answers.next();
    assert.ok(fields.includes('Connection: close'));
    assert.equal(await client.answers.rest(), '');
  });
});

const postNext = 'POST /next HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n';
