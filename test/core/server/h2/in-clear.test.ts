import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:http2';
import { connect as connectSocket } from 'node:net';
import { suite, test } from 'node:test';
import { timeouts } from '../../../../src/core/server/h1/timeouts.ts';
import { startSite } from '../../../harness.ts';
import { readReply } from './client.ts';
import { clientOf, describeFrame, fieldBlock, frame, preface } from './raw-client.ts';

const files = { 'site/a.txt': 'a file' };
const ini = '[disk.site]\nroot = site\n';
const health = 'GET /svc1/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n';

const headOf = (url: string) =>
  [
    [':method', 'GET'],
    [':scheme', 'http'],
    [':path', '/a.txt'],
    [':authority', new URL(url).host],
  ] as const;

suite('a client that knows that a port without TLS speaks HTTP/2 (RFC 9113 §3.3)', () => {
  test('gets its answers over HTTP/2', async (t) => {
    const site = await startSite(t, { files, ini });
    const session = connect(site.url);
    t.after(() => {
      session.destroy();
    });
    for (const [path, status] of [
      ['/a.txt', 200],
      ['/a.txt', 200],
      ['/none', 404],
      ['/svc1/health', 200],
    ] as const) {
      const reply = await readReply(session.request({ ':path': path }));
      assert.equal(reply.status, status);
    }
    const posted = session.request({
      ...{ ':path': '/svc1/server/status', ':method': 'POST', apikey: site.adminKey },
      'content-type': 'application/json',
    });
    posted.end('{"v":{}}');
    assert.equal((await readReply(posted)).status, 200);
    const metrics = await readReply(session.request({ ':path': '/svc1/metrics' }));
    assert.match(metrics.body.toString(), /^waymark_connections 1$/m);
  });

  test('may be silent for a while before its preface', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] });
    const site = await startSite(t, { files, ini });
    const socket = connectSocket(site.port, '127.0.0.1').setNoDelay(true);
    const client = clientOf(t, socket, '');
    await once(socket, 'connect');
    // The server has the connection by the time that it answers another one.
    assert.match(await site.raw(health), /^HTTP\/1\.1 200 /);
    t.mock.timers.tick(2 * timeouts.checkMs);
    client.send(Buffer.from(preface), frame('SETTINGS', 0, 0));
    client.send(frame('HEADERS', 5, 1, fieldBlock(headOf(site.url))));
    const isAnswered = () => client.frames.some((one) => describeFrame(one) === 'answer 200');
    await client.until(isAnswered);
    assert.ok(isAnswered());
  });

  test('may send the preface byte by byte', async (t) => {
    const site = await startSite(t, { files, ini });
    const socket = connectSocket(Number(new URL(site.url).port), '127.0.0.1').setNoDelay(true);
    const client = clientOf(t, socket, '');
    for (const byte of Buffer.from(preface)) {
      client.send(Buffer.of(byte));
      await new Promise((resolve) => setImmediate(resolve));
    }
    const head = fieldBlock(headOf(site.url));
    client.send(frame('SETTINGS', 0, 0), frame('HEADERS', 5, 1, head));
    const isAnswered = () => client.frames.some((one) => describeFrame(one) === 'answer 200');
    await client.until(isAnswered);
    assert.ok(isAnswered());
  });

  test('leaves other clients HTTP/1.1, also those whose first bytes are the same', async (t) => {
    const site = await startSite(t, { files, ini });
    const { host, port } = new URL(site.url);
    for (const [pieces, status] of [
      [['P', `OST /svc1/health HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 0\r\n\r\n`], 405],
      [['PRI', `VATE /a.txt HTTP/1.1\r\nHost: ${host}\r\n\r\n`], 501],
      [['PRI * HTTP/2.0\r\n', '\r\nXX\r\n\r\n'], 501],
    ] as const) {
      const socket = connectSocket(Number(port), '127.0.0.1').setNoDelay(true);
      t.after(() => socket.destroy());
      socket.write(pieces[0]);
      await new Promise((resolve) => setImmediate(resolve));
      socket.write(pieces[1]);
      const [answer] = (await once(socket, 'data')) as [Buffer];
      assert.match(
        answer.toString('latin1'),
        new RegExp(`^HTTP/1\\.1 ${status} `),
        pieces.join(''),
      );
    }
  });
});
