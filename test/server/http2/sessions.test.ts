import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type ClientHttp2Session } from 'node:http2';
import { connect as connectSocket } from 'node:net';
import { suite, test, type TestContext } from 'node:test';
import {
  http2LookMs,
  keepAliveTimeoutMs,
  requestTimeoutMs,
  stalledMs,
} from '../../../src/model/limits.ts';
import { silentLog } from '../../../src/observe/log.ts';
import { readBody } from '../../../src/server/body.ts';
import { Sessions } from '../../../src/server/http2/sessions.ts';
import type { StreamAnswer } from '../../../src/server/http2/stream-answer.ts';
import type { StreamMessage } from '../../../src/server/http2/stream-message.ts';
import { readReply } from './client.ts';
import { clientOf, fieldBlock, frame, preface } from './raw-client.ts';

/** Sessions in the clear, whose clock a test turns. */
async function startSessions(
  t: TestContext,
  answer: (message: StreamMessage, answer: StreamAnswer) => void,
) {
  let nowMs = 0;
  const warnings: string[] = [];
  const sessions = new Sessions({
    log: { ...silentLog, warn: (_fields, message) => warnings.push(message) },
    monotonicMs: () => nowMs,
  });
  const server = createServer();
  sessions.watch(server, answer);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    sessions.close();
    sessions.destroyAll();
    server.close();
  });
  const address = server.address();
  assert.ok(address !== null && typeof address === 'object');
  return {
    port: address.port,
    warnings,
    async open(): Promise<ClientHttp2Session> {
      const session = connect(`http://127.0.0.1:${address.port}`);
      session.on('error', () => undefined);
      t.after(() => {
        session.destroy();
      });
      await once(session, 'remoteSettings');
      return session;
    },
    /** Lets time go by, with the looks that come meanwhile. */
    pass(ms: number): void {
      for (let gone = 0; gone < ms; gone += http2LookMs) {
        nowMs += Math.min(http2LookMs, ms - gone);
        sessions.look();
      }
    },
  };
}

const chunk = Buffer.alloc(1 << 20);
const answerMuch = (_message: StreamMessage, answer: StreamAnswer): void => {
  answer.writeHead(200, []);
  answer.write(chunk);
  answer.end(chunk);
};
const pathOf = { ':scheme': 'https', ':path': '/', ':authority': 'localhost' };

suite('a session', () => {
  test('without requests ends after a while, one that is in use goes on', async (t) => {
    const rig = await startSessions(t, (_message, answer) => {
      answer.writeHead(204, []).end();
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

  test('whose client reads nothing any more ends, whatever else it sends', async (t) => {
    const rig = await startSessions(t, answerMuch);
    const client = clientOf(
      t,
      connectSocket(rig.port, '127.0.0.1'),
      Buffer.concat([
        Buffer.from(preface),
        frame('SETTINGS', 0, 0),
        frame('HEADERS', 5, 1, fieldBlock([[':method', 'GET'], ...Object.entries(pathOf)])),
      ]),
    );
    const received = () => client.frames.filter(({ type }) => type === 'DATA');
    await client.until(
      () => received().reduce((sum, { payload }) => sum + payload.length, 0) === 65_535,
    );
    rig.pass(http2LookMs);
    rig.pass(stalledMs - http2LookMs);
    client.send(frame('PING', 0, 0, 'here I am'.slice(0, 8)));
    await client.until(() => client.frames.some(({ type }) => type === 'PING'));
    assert.deepEqual(rig.warnings, []);
    rig.pass(http2LookMs);
    await client.until(() => client.closed());
    assert.deepEqual(rig.warnings, [
      'A connection of HTTP/2 was ended: its client did not read what it had asked for.',
    ]);
  });

  test('whose client reads slowly goes on', async (t) => {
    const rig = await startSessions(t, answerMuch);
    const session = await rig.open();
    const stream = session.request(pathOf);
    await once(stream, 'response');
    let bytes = 0;
    for await (const part of stream as AsyncIterable<Buffer>) {
      bytes += part.length;
      // What is left by then may have gone out already.
      if (bytes > chunk.length) continue;
      await new Promise((resolve) => session.ping(resolve));
      rig.pass(stalledMs / 8);
    }
    assert.equal(bytes, 2 * chunk.length);
    assert.deepEqual(rig.warnings, []);
  });

  test('whose client reads one stream but not another loses that one', async (t) => {
    const rig = await startSessions(t, (message, answer) => {
      if (message.url === '/much') answerMuch(message, answer);
      else answer.writeHead(200, []).end('little');
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
    assert.deepEqual(rig.warnings, [
      'A stream was reset: its client did not read what it had asked for.',
    ]);
    assert.ok(!session.closed);
  });

  test('is not ended while it is ours to answer', async (t) => {
    let answer: StreamAnswer | undefined;
    const rig = await startSessions(t, (_message, given) => {
      answer = given;
    });
    const session = await rig.open();
    const stream = session.request(pathOf);
    const reply = readReply(stream);
    await new Promise((resolve) => session.ping(resolve));
    rig.pass(10 * stalledMs);
    answer?.writeHead(200, []).end('late');
    assert.equal((await reply).body.toString(), 'late');
    assert.deepEqual(rig.warnings, []);
  });
});

test('content that does not come in time is not waited for', async (t) => {
  const rig = await startSessions(t, (message, answer) => {
    readBody(message as never, 100).then(
      () => answer.writeHead(200, []).end(),
      (error: unknown) => answer.writeHead(400, []).end((error as Error).message),
    );
  });
  const session = await rig.open();
  const stream = session.request({ ...pathOf, ':method': 'POST' }, { endStream: false });
  stream.on('error', () => undefined);
  stream.write('x');
  const reply = readReply(stream);
  await new Promise((resolve) => session.ping(resolve));
  rig.pass(requestTimeoutMs - 1);
  assert.deepEqual(rig.warnings, []);
  rig.pass(1);
  const { status, body } = await reply;
  assert.deepEqual([status, body.toString()], [400, 'The request did not arrive in time.']);
  assert.deepEqual(rig.warnings, ['A request was given up: its content did not arrive in time.']);
});
