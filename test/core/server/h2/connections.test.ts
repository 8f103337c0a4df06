import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type ClientHttp2Session, connect, constants } from 'node:http2';
import { connect as connectSocket, createServer } from 'node:net';
import { type TestContext, suite, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { promisify } from 'node:util';
import { statusFor } from '../../../../src/core/http/reply.ts';
import { requestTimeoutMs } from '../../../../src/core/operations/limits.ts';
import { passContentOn, readBody } from '../../../../src/core/pipeline/body.ts';
import { http2ConcurrentStreamsMax } from '../../../../src/core/server/h2/connection.ts';
import {
  Http2Connections,
  http2CheckMs,
  http2CountingMs,
} from '../../../../src/core/server/h2/connections.ts';
import type { StreamBody } from '../../../../src/core/server/h2/stream-body.ts';
import {
  type StreamExchange,
  http2WriteBytes,
} from '../../../../src/core/server/h2/stream-exchange.ts';
import {
  headersTimeoutMs,
  keepAliveTimeoutMs,
  leastRate,
  lingerMs,
  stalledMs,
  unreadBodyBytesMax,
} from '../../../../src/core/server/limits.ts';
import { acceptConnections } from '../../../../src/core/server/listening/accept.ts';
import { Failure } from '../../../../src/core/values/failure.ts';
import type { LimitName } from '../../../../src/core/values/limit.ts';
import { readReply } from './client.ts';
import {
  clientOf,
  describeFrame,
  fieldBlock,
  flags,
  frame,
  preface,
  settings,
  uint32,
} from './raw-client.ts';

/** Starts connections without TLS, with a clock that the test controls. */
async function startConnections(
  t: TestContext,
  handle: (exchange: StreamExchange) => void,
  { streamsMax, perAddress = Infinity }: { streamsMax?: number; perAddress?: number } = {},
) {
  let nowMs = 0;
  const passed: LimitName[] = [];
  const connections = new Http2Connections({
    limits: { passed: (limit) => passed.push(limit) },
    monotonicMs: () => nowMs,
    now: () => nowMs,
    perAddress: () => perAddress,
    ...(streamsMax !== undefined && { streamsMax }),
  });
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    connections.serve(socket, { handle, upgrade: () => assert.fail() });
  });
  acceptConnections(server, 'tcp', () => []);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    connections.close();
    connections.destroyAll();
    server.close();
  });
  const address = server.address();
  assert.ok(address !== null && typeof address === 'object');
  return {
    port: address.port,
    passed,
    settled: () => connections.settled(),
    connections: () => promisify(server.getConnections.bind(server))(),
    /** Resolves when every client with a recent answer has disconnected. */
    leave(): Promise<void> {
      connections.close();
      return connections.clientsClosed();
    },
    async open(localAddress = '127.0.0.1'): Promise<ClientHttp2Session> {
      const where = { port: address.port, host: '127.0.0.1', localAddress };
      const session = connect('http://127.0.0.1', { createConnection: () => connectSocket(where) });
      session.on('error', () => undefined);
      t.after(() => {
        session.destroy();
      });
      await once(session, 'remoteSettings');
      // The server has read the settings of the client, too.
      await new Promise((resolve) => session.ping(resolve));
      return session;
    },
    /** Advances the clock, with the periodic checks. */
    pass(ms: number): void {
      for (let gone = 0; gone < ms; gone += http2CheckMs) {
        nowMs += Math.min(http2CheckMs, ms - gone);
        connections.check();
      }
    },
  };
}

function contentOf({ content }: StreamExchange): StreamBody {
  return content ?? assert.fail('the request has no content');
}

/** The content of a request, for its reader. */
function sentBy({ content, head: { fields } }: StreamExchange) {
  const length = fields[fields.indexOf('content-length') + 1];
  return {
    body: content,
    fields: fields.includes('content-length') ? { 'content-length': length } : {},
  };
}

const chunk = Buffer.alloc(1 << 20);
const answerMuch = (answer: StreamExchange): void => {
  const content = answer.beginAnswer(200, []);
  content.write(chunk);
  content.end(chunk);
};
const pathOf = { ':scheme': 'http', ':path': '/', ':authority': 'localhost' };

suite('an HTTP/2 connection', () => {
  test('without requests ends after a timeout, one in use stays open', async (t) => {
    const rig = await startConnections(t, (answer) => {
      answer.beginAnswer(204, []).end();
    });
    const session = await rig.open();
    rig.pass(keepAliveTimeoutMs - 1);
    const stream = session.request(pathOf);
    assert.equal((await readReply(stream)).status, 204);
    if (!stream.closed) await once(stream, 'close');
    rig.pass(keepAliveTimeoutMs - 1);
    assert.ok(!session.closed);
    const goaway = once(session, 'goaway');
    rig.pass(1);
    assert.equal((await goaway)[0], 0);
  });

  /** Sends a request for a large answer, and controls the flow-control window. */
  async function askRaw(t: TestContext, rig: Awaited<ReturnType<typeof startConnections>>) {
    const client = clientOf(
      t,
      connectSocket(rig.port, '127.0.0.1'),
      Buffer.concat([
        Buffer.from(preface),
        frame('SETTINGS', 0, 0),
        frame('HEADERS', 5, 1, fieldBlock([[':method', 'GET'], ...Object.entries(pathOf)])),
      ]),
    );
    const isContent = ({ type }: { type: string }): boolean => type === 'DATA';
    const received = () =>
      client.frames.filter(isContent).reduce((sum, { payload }) => sum + payload.length, 0);
    let window = 65_535;
    await client.until(() => received() === window);
    return {
      client,
      /** Opens the windows of connection and stream, and waits for the content. */
      take: async (bytes: number, ofConnection = bytes): Promise<void> => {
        const more = (stream: number, by: number) => frame('WINDOW_UPDATE', 0, stream, uint32(by));
        client.send(more(0, ofConnection), more(1, bytes));
        window += bytes;
        await client.until(() => received() === window);
      },
    };
  }

  test('whose client has stopped reading ends, whatever else it sends', async (t) => {
    const rig = await startConnections(t, answerMuch);
    const { client } = await askRaw(t, rig);
    rig.pass(http2CheckMs);
    rig.pass(stalledMs - http2CheckMs);
    client.send(frame('PING', 0, 0, 'here I am'.slice(0, 8)));
    await client.until(() => client.frames.some(({ type }) => type === 'PING'));
    assert.deepEqual(rig.passed, []);
    rig.pass(http2CheckMs);
    await client.until(() => client.closed());
    assert.deepEqual(rig.passed, ['unread_answer']);
  });

  test('whose client reads an answer too slowly resets it', async (t) => {
    const rig = await startConnections(t, answerMuch);
    const { client, take } = await askRaw(t, rig);
    const { bytesPerSecond, windowMs } = leastRate;
    const enough = Math.ceil((bytesPerSecond * http2CheckMs) / 1_000);
    for (let passedMs = 0; passedMs <= 2 * windowMs; passedMs += http2CheckMs) {
      rig.pass(http2CheckMs);
      await take(enough);
    }
    assert.deepEqual(rig.passed, []);
    for (let passedMs = 0; passedMs <= 2 * windowMs; passedMs += http2CheckMs) {
      if (rig.passed.length > 0) break;
      await take(enough - 100);
      rig.pass(http2CheckMs);
    }
    assert.deepEqual(rig.passed, ['slow_answer']);
    await client.until(() => client.frames.some(({ type }) => type === 'RST_STREAM'));
  });

  test('whose client sends content too slowly ends that request alone', async (t) => {
    const failures: unknown[] = [];
    const rig = await startConnections(t, (exchange) => {
      const sent = sentBy(exchange);
      if (sent.fields['content-length'] === undefined) {
        exchange.beginAnswer(204, []).end();
        return;
      }
      passContentOn(contentOf(exchange));
      readBody(sent, 1 << 20).catch((error: unknown) => failures.push(error));
    });
    const session = await rig.open();
    const slow = session.request(
      { ...pathOf, ':method': 'POST', 'content-length': '100000' },
      { endStream: false },
    );
    slow.on('error', () => undefined);
    for (let passedMs = 0; passedMs <= 2 * leastRate.windowMs; passedMs += http2CheckMs) {
      slow.write('y');
      await new Promise((resolve) => session.ping(resolve));
      rig.pass(http2CheckMs);
    }
    assert.deepEqual(
      failures.map((one) => (one as Failure).limit),
      ['slow_content'],
    );
    assert.equal((await readReply(session.request(pathOf))).status, 204);
  });

  test('whose client opens its window step by step stays open', async (t) => {
    const rig = await startConnections(t, answerMuch);
    const { client, take } = await askRaw(t, rig);
    for (let passedMs = 0; passedMs < 3 * stalledMs; passedMs += http2CheckMs) {
      rig.pass(http2CheckMs);
      await take(4_096);
    }
    assert.deepEqual(rig.passed, []);
    assert.ok(!client.closed());
  });

  test('whose window is closed from time to time stays open', async (t) => {
    const rig = await startConnections(t, answerMuch);
    const { client, take } = await askRaw(t, rig);
    const bytes = 2_100;
    assert.ok(bytes * (stalledMs / http2CheckMs) < http2WriteBytes, 'a piece takes longer');
    const pings = () => client.frames.filter(({ type }) => type === 'PING').length;
    for (let look = 1; look <= (3 * stalledMs) / http2CheckMs; look += 1) {
      const isFree = look % 10 === 0;
      if (isFree) {
        const before = pings();
        const window = frame('WINDOW_UPDATE', 0, 0, uint32(1));
        client.send(Buffer.concat([window, frame('PING', 0, 0, 'is it so')]));
        await client.until(() => pings() > before);
      }
      rig.pass(http2CheckMs);
      await take(bytes, isFree ? bytes - 1 : bytes);
    }
    assert.deepEqual(rig.passed, []);
  });

  test('whose client allowed all content of a response, and no more, has its end as well', async (t) => {
    const rig = await startConnections(t, (answer) => {
      const content = answer.beginAnswer(200, []);
      content.write(Buffer.alloc(65_535), () => content.end());
    });
    const { client } = await askRaw(t, rig);
    await client.until(() =>
      client.frames.some(
        ({ type, flags: given }) => type === 'DATA' && (given & flags.END_STREAM) !== 0,
      ),
    );
    assert.deepEqual(rig.passed, []);
  });

  test('whose client reads slowly stays open', async (t) => {
    const rig = await startConnections(t, answerMuch);
    const session = await rig.open();
    const stream = session.request(pathOf);
    await once(stream, 'response');
    let bytes = 0;
    for await (const part of stream as AsyncIterable<Buffer>) {
      bytes += part.length;
      // The rest may have been sent already.
      if (bytes > chunk.length) continue;
      await new Promise((resolve) => session.ping(resolve));
      rig.pass(stalledMs / 8);
    }
    assert.equal(bytes, 2 * chunk.length);
    assert.deepEqual(rig.passed, []);
  });

  test('whose client reads one stream but not another loses the other one', async (t) => {
    const rig = await startConnections(t, (answer) => {
      if (answer.head.url === '/much') answerMuch(answer);
      else answer.beginAnswer(200, []).end('little');
    });
    const session = await rig.open();
    session.setLocalWindowSize(1 << 24);
    const stuck = session.request({ ...pathOf, ':path': '/much' });
    stuck.on('error', () => undefined).pause();
    await once(stuck, 'response');
    const closed = once(stuck, 'close');
    for (let asked = 0; asked < 4; asked += 1) {
      rig.pass(stalledMs / 3);
      const { body } = await readReply(session.request({ ...pathOf, ':path': '/little' }));
      assert.equal(body.toString(), 'little');
    }
    stuck.resume();
    await closed;
    assert.deepEqual(rig.passed, ['unread_answer']);
    assert.ok(!session.closed);
  });

  test('whose client neither reads nor closes is cut off', async (t) => {
    const much = Buffer.alloc(1 << 25);
    const rig = await startConnections(t, (answer) => {
      answer.beginAnswer(200, []).end(much);
    });
    const wide = settings([4, 2 ** 31 - 1]);
    const asking = Buffer.concat([
      Buffer.from(preface),
      frame('SETTINGS', 0, 0, wide),
      frame('WINDOW_UPDATE', 0, 0, uint32(2 ** 30)),
      frame('HEADERS', 5, 1, fieldBlock([[':method', 'GET'], ...Object.entries(pathOf)])),
    ]);
    const silent = Buffer.concat([Buffer.from(preface), frame('SETTINGS', 0, 0)]);
    for (const opening of [asking, silent]) {
      const socket = connectSocket({ port: rig.port, host: '127.0.0.1', allowHalfOpen: true });
      const client = clientOf(t, socket, opening);
      await client.until(() => client.frames.length >= 2);
      client.pause();
    }
    assert.equal(await rig.connections(), 2);
    for (let turn = 0; turn < 100 && (await rig.connections()) > 0; turn += 1) {
      rig.pass(http2CheckMs);
      await nextTurn();
    }
    assert.equal(await rig.connections(), 0);
    assert.deepEqual([...new Set(rig.passed)], ['unread_answer']);
  });

  test('waits at its end for a client that has not read everything', async (t) => {
    const rig = await startConnections(t, (answer) => {
      answer.beginAnswer(200, []).end('read me');
    });
    const opening = [Buffer.from(preface), frame('SETTINGS', 0, 0)];
    const socket = connectSocket({ port: rig.port, host: '127.0.0.1', allowHalfOpen: true });
    const client = clientOf(t, socket, Buffer.concat(opening));
    const head = fieldBlock([[':method', 'GET'], ...Object.entries(pathOf)]);
    client.send(frame('HEADERS', 5, 1, head));
    await client.until(() => client.frames.some(({ type }) => type === 'DATA'));
    let hasLeft = false;
    const left = rig.leave().then(() => (hasLeft = true));
    await once(socket, 'end');
    client.send(frame('WINDOW_UPDATE', 0, 0, uint32(7)));
    assert.ok(!hasLeft);
    socket.end();
    await left;
  });

  test('is not ended while the server has to answer', async (t) => {
    let answer: StreamExchange | undefined;
    const rig = await startConnections(t, (given) => {
      answer = given;
    });
    const session = await rig.open();
    const stream = session.request(pathOf);
    const reply = readReply(stream);
    await new Promise((resolve) => session.ping(resolve));
    rig.pass(10 * stalledMs);
    answer?.beginAnswer(200, []).end('late');
    assert.equal((await reply).body.toString(), 'late');
    assert.deepEqual(rig.passed, []);
  });
});

suite('responses that are aborted half sent', () => {
  const piece = Buffer.alloc(http2WriteBytes);
  const many = 2 * http2ConcurrentStreamsMax;

  async function openWith(t: TestContext, answer: (exchange: StreamExchange) => void) {
    const rig = await startConnections(t, answer);
    const session = await rig.open();
    const goaways: number[] = [];
    session.on('goaway', (code: number) => goaways.push(code));
    /** Sends a request; resolves to the error code of the stream's reset. */
    const ask = async (isTakenBack = false): Promise<number> => {
      const stream = session.request(pathOf);
      const closed = new Promise((resolve) => stream.once('close', resolve));
      stream.on('error', () => undefined);
      if (!isTakenBack) stream.resume();
      else {
        await once(stream, 'response');
        await new Promise((resolve) => session.ping(resolve));
        stream.close(constants.NGHTTP2_CANCEL);
      }
      await closed;
      return stream.rstCode;
    };
    return { rig, session, goaways, ask };
  }

  test('by the server leave room for others on their connection', async (t) => {
    const { rig, session, goaways, ask } = await openWith(t, (answer) => {
      const content = answer.beginAnswer(200, []);
      if (answer.head.url === '/whole') content.end(piece);
      else {
        content.write(Buffer.concat([piece, piece, piece]));
        setImmediate(() => content.destroy());
      }
    });
    const codes = new Set<number>();
    for (let asked = 0; asked < many; asked += 10) {
      for (const code of await Promise.all(Array.from({ length: 10 }, () => ask()))) {
        codes.add(code);
      }
    }
    assert.deepEqual([...codes], [constants.NGHTTP2_INTERNAL_ERROR]);
    const { body } = await readReply(session.request({ ...pathOf, ':path': '/whole' }));
    assert.equal(body.length, piece.length);
    assert.deepEqual(goaways, []);
    assert.deepEqual(rig.passed, []);
  });

  test('by the client leave room for others as well', async (t) => {
    const { rig, session, goaways, ask } = await openWith(t, (answer) => {
      answer.beginAnswer(200, []).write(Buffer.concat([piece, piece, piece]));
    });
    session.settings({ initialWindowSize: 1_000 });
    await once(session, 'localSettings');
    for (let asked = 1; asked <= many; asked += 1) {
      await ask(true);
      // More PING frames in one period than a client may send.
      if (asked % 50 === 0) rig.pass(http2CountingMs);
    }
    const stream = session.request(pathOf);
    assert.equal((await once(stream, 'response'))[0][':status'], 200);
    assert.deepEqual(goaways, []);
    assert.deepEqual(rig.passed, []);
  });
});

suite('content that nobody has read makes room for other requests', () => {
  const ends: Readonly<Record<string, (answer: StreamExchange, reset: () => void) => void>> = {
    'once the request is answered': (answer) => {
      answer.beginAnswer(204, []).end();
    },
    'once the server has reset the request': (answer) => {
      answer.destroy();
    },
    'once the client has reset the request': (_answer, reset) => {
      reset();
    },
  };
  for (const [when, end] of Object.entries(ends)) {
    test(when, async (t) => {
      const rig = await startConnections(t, (answer) => {
        if (answer.head.url === '/read') {
          contentOf(answer)
            .resume()
            .once('end', () => answer.beginAnswer(204, []).end());
        } else answers.push(answer);
      });
      const answers: StreamExchange[] = [];
      const session = await rig.open();
      const post = { ...pathOf, ':method': 'POST' };
      for (let asked = 0; asked < 10; asked += 1) {
        const stream = session.request(post).on('error', () => undefined);
        stream.end(Buffer.alloc(15_000));
        await new Promise((resolve) => stream.once('finish', resolve));
        await new Promise((resolve) => session.ping(resolve));
        const closed = new Promise((resolve) => stream.resume().once('close', resolve));
        const answer = answers.shift();
        assert.ok(answer);
        end(answer, () => {
          stream.close(constants.NGHTTP2_CANCEL);
        });
        await closed;
      }
      const whole = session.request({ ...post, ':path': '/read' });
      whole.end(Buffer.alloc(1_000_000));
      assert.equal((await readReply(whole)).status, 204);
      assert.deepEqual(rig.passed, []);
    });
  }
});

test('a request with very many tiny pieces of content that nobody reads is reset', async (t) => {
  const rig = await startConnections(t, () => undefined);
  const client = clientOf(
    t,
    connectSocket(rig.port, '127.0.0.1'),
    Buffer.concat([Buffer.from(preface), frame('SETTINGS', 0, 0)]),
  );
  const head = fieldBlock([[':method', 'POST'], ...Object.entries(pathOf)]);
  const pieces = Array.from({ length: 20_000 }, () => frame('DATA', 0, 1, 'x'));
  client.send(frame('HEADERS', flags.END_HEADERS, 1, head), ...pieces);
  await client.until(() => client.frames.some(({ stream }) => stream === 1));
  const reset = client.frames.find(({ stream }) => stream === 1) ?? assert.fail();
  assert.equal(describeFrame(reset), 'RST_STREAM ENHANCE_YOUR_CALM');
});

test('the open requests of all connections are limited; a further one may be repeated', async (t) => {
  const answers: StreamExchange[] = [];
  const rig = await startConnections(t, (given) => answers.push(given), {
    streamsMax: 3,
  });
  const sessions = [await rig.open(), await rig.open()] as const;
  const open = [0, 1, 0].map((at) => sessions[at]?.request(pathOf) ?? assert.fail());
  for (const session of sessions) await new Promise((resolve) => session.ping(resolve));
  for (const session of sessions) {
    const refused = session.request(pathOf);
    refused.on('error', () => undefined);
    await new Promise((resolve) => refused.once('close', resolve));
    assert.equal(refused.rstCode, constants.NGHTTP2_REFUSED_STREAM);
  }
  assert.deepEqual(rig.passed, ['http2_streams', 'http2_streams']);
  const replies = open.map(readReply);
  for (const answer of answers) answer.beginAnswer(204, []).end();
  for (const reply of replies) assert.equal((await reply).status, 204);
  await rig.settled();
  const next = readReply(sessions[0].request(pathOf));
  await new Promise((resolve) => sessions[0].ping(resolve));
  answers.at(-1)?.beginAnswer(204, []).end();
  assert.equal((await next).status, 204);
});

test('each address has a share of the open requests', async (t) => {
  const answers: StreamExchange[] = [];
  const rig = await startConnections(t, (given) => answers.push(given), {
    perAddress: 2,
  });
  const [one, same, other] = [await rig.open(), await rig.open(), await rig.open('127.0.0.2')];
  const open = [one, same, other, other].map((session) => readReply(session.request(pathOf)));
  for (const session of [one, same, other]) {
    await new Promise((resolve) => session.ping(resolve));
    const refused = session.request(pathOf);
    refused.on('error', () => undefined);
    await new Promise((resolve) => refused.once('close', resolve));
    assert.equal(refused.rstCode, constants.NGHTTP2_REFUSED_STREAM);
  }
  for (const answer of answers) answer.beginAnswer(204, []).end();
  for (const reply of open) assert.equal((await reply).status, 204);
  await rig.settled();
  const next = readReply(same.request(pathOf));
  await new Promise((resolve) => same.ping(resolve));
  answers.at(-1)?.beginAnswer(204, []).end();
  assert.equal((await next).status, 204);
});

suite('content that does not arrive in time', () => {
  async function startUpload(rig: Awaited<ReturnType<typeof startConnections>>) {
    const session = await rig.open();
    const stream = session.request({ ...pathOf, ':method': 'POST' }, { endStream: false });
    stream.on('error', () => undefined);
    stream.write('x');
    const reply = readReply(stream);
    await new Promise((resolve) => session.ping(resolve));
    return { session, reply };
  }

  test('is not awaited', async (t) => {
    const failures: unknown[] = [];
    const rig = await startConnections(t, (answer) => {
      readBody(sentBy(answer), 100).catch((error: unknown) => {
        failures.push(error);
        answer.beginAnswer(408, []).end('too late');
      });
    });
    const { reply } = await startUpload(rig);
    rig.pass(requestTimeoutMs - 1);
    assert.equal(failures.length, 0);
    rig.pass(1);
    assert.equal((await reply).body.toString(), 'too late');
    const [failure] = failures;
    assert.ok(failure instanceof Failure);
    assert.deepEqual([statusFor(failure), failure.limit], [408, 'request_time']);
  });

  test('may go on for longer if it goes to another server', async (t) => {
    const rig = await startConnections(t, (answer) => {
      passContentOn(contentOf(answer));
      readBody(sentBy(answer), 100).then(
        (content) => answer.beginAnswer(200, []).end(`${content.length} bytes`),
        () => answer.beginAnswer(408, []).end('too late'),
      );
    });
    const session = await rig.open();
    for (const isGivenUp of [false, true]) {
      const stream = session.request({ ...pathOf, ':method': 'POST' }, { endStream: false });
      const reply = readReply(stream);
      for (let sent = 0; sent < 3; sent += 1) {
        stream.write('x');
        await new Promise((resolve) => session.ping(resolve));
        rig.pass(requestTimeoutMs - http2CheckMs);
      }
      if (isGivenUp) rig.pass(2 * requestTimeoutMs);
      else stream.end('x');
      assert.equal((await reply).body.toString(), isGivenUp ? 'too late' : '4 bytes');
    }
  });

  test('affects no other request if it has no reader', async (t) => {
    let answer: StreamExchange | undefined;
    const rig = await startConnections(t, (given) => {
      answer = given;
    });
    const { reply } = await startUpload(rig);
    rig.pass(2 * requestTimeoutMs);
    await nextTurn();
    answer?.beginAnswer(200, []).end('late');
    assert.equal((await reply).body.toString(), 'late');
    assert.deepEqual(rig.passed, ['request_time']);
  });
});

suite('the head of a request', () => {
  const head = [[':method', 'GET'], ...Object.entries(pathOf)] as [string, string][];
  const opening = [Buffer.from(preface), frame('SETTINGS', 0, 0), frame('PING', 0, 0, 'to be 8.')];
  for (const [name, frames] of [
    ['does not end', frame('HEADERS', flags.END_STREAM, 1, fieldBlock(head))],
    ['does not begin whole', frame('HEADERS', 5, 1, fieldBlock(head)).subarray(0, 12)],
  ] as const) {
    test(`that ${name} has one line in the log, and holds no memory for long`, async (t) => {
      const answered: StreamExchange[] = [];
      const rig = await startConnections(t, (answer) => answered.push(answer));
      const socket = connectSocket(rig.port, '127.0.0.1');
      const client = clientOf(t, socket, Buffer.concat([...opening, frames]));
      // The server answers a PING after reading all earlier frames.
      await client.until(() => client.frames.some(({ type }) => type === 'PING'));
      rig.pass(headersTimeoutMs);
      assert.deepEqual(rig.passed, []);
      rig.pass(http2CheckMs);
      await client.until(() => client.closed());
      assert.deepEqual(rig.passed, ['http2_heads']);
      assert.deepEqual(answered, []);
    });
  }

  for (const sent of ['', preface.slice(0, 20), preface]) {
    test(`has to follow ${sent.length} bytes of the preface in time`, async (t) => {
      const rig = await startConnections(t, () => assert.fail());
      const client = clientOf(t, connectSocket(rig.port, '127.0.0.1'), sent);
      await client.until(() => client.frames.length > 0);
      rig.pass(headersTimeoutMs + http2CheckMs);
      await client.until(() => client.closed());
      assert.deepEqual(rig.passed, ['http2_heads']);
    });
  }
});

suite('content that is much longer than the windows reaches a reader', () => {
  const readers: Readonly<Record<string, (body: StreamBody) => Promise<number>>> = {
    'that iterates': async (body) => {
      let bytes = 0;
      for await (const part of body as AsyncIterable<Buffer>) {
        bytes += part.length;
        await nextTurn();
      }
      return bytes;
    },
    'that pauses after each piece': async (body) => {
      let bytes = 0;
      body.on('data', (part: Buffer) => {
        bytes += part.length;
        body.pause();
        setImmediate(() => body.resume());
      });
      await once(body, 'end');
      return bytes;
    },
    'that asks for a few bytes at a time': async (body) => {
      let bytes = 0;
      body.on('readable', () => {
        for (let part = body.read(1_000); part !== null; part = body.read(1_000)) {
          bytes += (part as Buffer).length;
        }
      });
      await once(body, 'end');
      return bytes;
    },
    'that begins late': async (body) => {
      for (let turn = 0; turn < 100; turn += 1) await nextTurn();
      return (await readBody({ body, fields: {} }, 1 << 24)).length;
    },
  };
  for (const [name, read] of Object.entries(readers)) {
    test(name, async (t) => {
      const rig = await startConnections(t, (answer) => {
        void read(contentOf(answer)).then((bytes) =>
          answer.beginAnswer(200, []).end(`${bytes} bytes`),
        );
      });
      const session = await rig.open();
      const stream = session.request({ ...pathOf, ':method': 'POST' }, { endStream: false });
      const reply = readReply(stream);
      stream.end(Buffer.alloc(1_000_003));
      assert.equal((await reply).body.toString(), '1000003 bytes');
    });
  }
});

test('empty content ends also for a late reader', async (t) => {
  const asked: (() => Promise<void>)[] = [];
  const rig = await startConnections(t, (answer) => {
    asked.push(async () => {
      const content = await readBody(sentBy(answer), 100);
      answer.beginAnswer(200, []).end(`${content.length} bytes`);
    });
  });
  const session = await rig.open();
  const stream = session.request({ ...pathOf, ':method': 'POST' }, { endStream: false });
  const reply = readReply(stream);
  stream.end();
  await new Promise((resolve) => session.ping(resolve));
  rig.pass(requestTimeoutMs);
  assert.deepEqual(rig.passed, []);
  await Promise.all(asked.map((answer) => answer()));
  assert.equal((await reply).body.toString(), '0 bytes');
});

suite('content that is no longer needed', () => {
  test('does not hold its request once it has arrived whole', async (t) => {
    const answers: StreamExchange[] = [];
    const rig = await startConnections(t, (answer) => {
      const message = contentOf(answer);
      message.once('data', () => {
        message.pause();
        answers.push(answer);
      });
    });
    const session = await rig.open();
    const stream = session.request({ ...pathOf, ':method': 'POST' }, { endStream: false });
    const reply = readReply(stream);
    // As much as may arrive without a reader.
    stream.end(Buffer.alloc(60_000));
    await once(stream, 'finish');
    await new Promise((resolve) => session.ping(resolve));
    for (const answer of answers) answer.beginAnswer(200, []).end('enough');
    assert.equal((await reply).body.toString(), 'enough');
    await rig.settled();
    rig.pass(requestTimeoutMs);
    assert.deepEqual(rig.passed, []);
  });

  const post = [[':method', 'POST'], ...Object.entries(pathOf)] as [string, string][];
  const { END_STREAM, END_HEADERS } = flags;

  const refused = [405, 'no'] as const;

  /** A client that has its answer but has not ended its request. */
  async function answered(t: TestContext, [status, content]: readonly [number, string?] = refused) {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const rig = await startConnections(t, (answer) => {
      answer.beginAnswer(status, []).end(content);
    });
    const opening = [
      Buffer.from(preface),
      frame('SETTINGS', 0, 0),
      frame('HEADERS', END_HEADERS, 1, fieldBlock(post)),
    ];
    const socket = connectSocket(rig.port, '127.0.0.1');
    const client = clientOf(t, socket, Buffer.concat(opening));
    const hasSeen = (what: string) => client.frames.some((one) => describeFrame(one) === what);
    await client.until(() => hasSeen(`answer ${status}`));
    if (content !== undefined) await client.until(() => hasSeen('DATA'));
    return {
      client,
      hasSeen,
      settled: () => rig.settled(),
      /** Resolves when the server has read all frames. */
      ping: async (): Promise<void> => {
        const pings = () => client.frames.filter(({ type }) => type === 'PING').length;
        const before = pings();
        client.send(frame('PING', 0, 0, 'are we..'));
        await client.until(() => pings() > before);
      },
    };
  }

  for (const [name, answer] of [
    ['is discarded if there is little of it', refused],
    ['is discarded after a response without content as well', [204]],
  ] as const)
    test(name, async (t) => {
      const { client, hasSeen, ping, settled } = await answered(t, answer);
      await ping();
      assert.ok(!hasSeen('RST_STREAM NO_ERROR'));
      client.send(frame('DATA', 0, 1, 'x'.repeat(16_000)));
      await ping();
      client.send(frame('DATA', END_STREAM, 1, 'x'));
      await settled();
      await ping();
      assert.ok(!hasSeen('RST_STREAM NO_ERROR'));
    });

  test('is not awaited', async (t) => {
    const { client, hasSeen, ping } = await answered(t);
    await ping();
    assert.ok(!hasSeen('RST_STREAM NO_ERROR'));
    t.mock.timers.tick(lingerMs);
    await client.until(() => hasSeen('RST_STREAM NO_ERROR'));
    await ping();
    assert.ok(!client.closed());
  });

  test('is refused if there is much of it', async (t) => {
    const { client, hasSeen, ping } = await answered(t);
    for (let bytes = 0; bytes <= unreadBodyBytesMax; bytes += 16_000) {
      assert.ok(!hasSeen('RST_STREAM NO_ERROR'));
      client.send(frame('DATA', 0, 1, 'x'.repeat(16_000)));
      await ping();
    }
    await client.until(() => hasSeen('RST_STREAM NO_ERROR'));
    await ping();
    assert.ok(!client.closed());
  });
});
