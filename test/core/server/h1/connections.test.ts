import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { suite, test, type TestContext } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { startSite, type TestSite } from '../../../harness.ts';
import { AnswerReader } from '../../pipeline/answers.ts';
import { serverSockets } from '../../pipeline/raw-connection.ts';

const file = { files: { 'site/big.bin': Buffer.alloc(4 << 20, 'x'), 'site/dir/index.html': 'x' } };
const ini = '[disk.site]\nroot = site\n';

/** A client that does not close its side when the server does. */
async function openSocket(t: TestContext, site: TestSite): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port: site.port, allowHalfOpen: true });
  t.after(() => socket.destroy());
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
}

/** Resolves when a connection has closed, with an error or without. */
function gone(socket: Socket): Promise<unknown> {
  return new Promise((resolve) => socket.once('close', resolve));
}

/** All bytes received until the server ends its side. */
async function readToEnd(socket: Socket): Promise<string> {
  let text = '';
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1');
  });
  await Promise.race([once(socket, 'end'), gone(socket)]);
  return text;
}

/** Waits until the server has closed a connection: it then answers bytes with a reset. */
async function untilReset(socket: Socket): Promise<void> {
  const closed = gone(socket);
  const knock = setInterval(() => socket.write('x'), 50);
  await closed;
  clearInterval(knock);
}

const head = 'Host: localhost\r\n';

suite('a connection', () => {
  test('answers pipelined requests in their order, with large responses too', async (t) => {
    const site = await startSite(t, { ...file, ini });
    const socket = await openSocket(t, site);
    const paths = Array.from({ length: 50 }, (_, at) =>
      at % 10 === 3 ? '/big.bin' : at % 2 === 0 ? '/dir/' : `/none/${at}`,
    );
    socket.write(paths.map((path) => `GET ${path} HTTP/1.1\r\n${head}\r\n`).join(''));
    socket.write(`GET /dir/ HTTP/1.1\r\n${head}Connection: close\r\n\r\n`);
    const statuses = [...(await readToEnd(socket)).matchAll(/HTTP\/1\.1 (\d+) /g)];
    assert.deepEqual(
      statuses.map(([, status]) => status),
      [...paths.map((path) => (path.startsWith('/none') ? '404' : '200')), '200'],
    );
  });

  test('takes no further requests while its client reads no answers', async (t) => {
    const sockets = serverSockets(t);
    const content = 'x'.repeat(10_000);
    const site = await startSite(t, { rules: [{ path: '/page', kind: 'content', content }] });
    const request = `GET /page HTTP/1.1\r\n${head}\r\n`;
    const last = `GET /page HTTP/1.1\r\n${head}Connection: close\r\n\r\n`;
    // From then on, the answer is prepared, and goes out in the turn in which a request is read.
    await site.raw(last);
    const socket = await openSocket(t, site);
    socket.pause();
    const count = 5_000;
    socket.write(request.repeat(count - 1) + last);
    const isHeld = (): boolean => sockets.some((served) => served.isPaused());
    while (!isHeld()) await nextTurn();
    const waiting = Math.max(...sockets.map(({ writableLength }) => writableLength));
    assert.ok(waiting < 1 << 20, `${waiting} bytes wait`);
    const answers = await readToEnd(socket.resume());
    assert.equal(answers.split('HTTP/1.1 200 OK').length - 1, count);
  });

  test('refuses a malformed head after an Upgrade that is ignored', async (t) => {
    const site = await startSite(t);
    const socket = await openSocket(t, site);
    const answers = new AnswerReader(socket);
    const upgrade = 'Connection: upgrade\r\nUpgrade: h2c\r\n';
    socket.write(`OPTIONS /a HTTP/1.1\r\n${head}${upgrade}\r\n`);
    assert.match((await answers.next()).statusLine, / 204 /);
    socket.write(`GET /b HTTP/1.1\r\n${head}X: \0\r\n\r\n`);
    assert.match((await answers.next()).statusLine, / 400 /);
    socket.write(`GET /svc1/health HTTP/1.1\r\n${head}\r\n`);
    assert.equal(await answers.rest(), '');
  });

  for (const [title, start, rest] of [
    ['breaks off', 'Content-Length: 100\r\n\r\nabc', undefined],
    ['sends no chunk where one has to be', 'Transfer-Encoding: chunked\r\n\r\n', 'ZZ\r\n'],
  ] as const) {
    test(`whose request content ${title} is closed`, async (t) => {
      const site = await startSite(t);
      const socket = await openSocket(t, site);
      socket.write(`POST /svc1/userinterface/get HTTP/1.1\r\n${head}${start}`);
      socket.resume();
      if (rest === undefined) {
        socket.end();
        await gone(socket);
      } else {
        socket.write(rest);
        await untilReset(socket);
      }
    });
  }

  test('that ends within a request is told so', async (t) => {
    const site = await startSite(t);
    const started = `POST /svc1/userinterface/list HTTP/1.1\r\n${head}apikey: ${site.adminKey}\r\n`;
    for (const request of [
      'GET /a HTTP/1.1\r\nHost: lo',
      `${started}Content-Length: 100\r\n\r\n{"v"`,
      `${started}Transfer-Encoding: chunked\r\n\r\n5\r\n{"v`,
    ]) {
      const socket = await openSocket(t, site);
      socket.end(request);
      const answer = await readToEnd(socket);
      assert.match(
        answer,
        /^HTTP\/1\.1 400 [^]*ended before the whole request had arrived/,
        request,
      );
    }
  });

  test('that was refused is closed, even if the client keeps it open', async (t) => {
    const site = await startSite(t);
    for (const request of [
      `GET /none HTTP/1.1\r\n${head}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
      '@no request at all\r\n\r\n',
    ]) {
      const socket = await openSocket(t, site);
      socket.write(request);
      assert.match(await readToEnd(socket), /^HTTP\/1\.1 4/);
      await untilReset(socket);
    }
  });

  test('does not delay a stop, whatever part of a request has arrived', async (t) => {
    const site = await startSite(t);
    const sockets = [await openSocket(t, site), await openSocket(t, site)];
    sockets[0]?.write(`GET /svc1/ws HTTP/1.1\r\n${head}Connection: Upgrade\r\nUpgrade: webso`);
    sockets[1]?.write(
      `GET /none HTTP/1.1\r\n${head}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
    );
    await once(sockets[1] ?? assert.fail(), 'data');
    await site.waymark.stop(0);
  });
});

suite('a response', () => {
  test('that cannot be sent fails its own request only', async (t) => {
    const site = await startSite(t, { ...file, ini });
    const place = `_v.origin=${encodeURIComponent(site.url)}&_v.path=/dir`;
    const url = `${site.url}/svc1/userinterface/get_content?${place}`;
    const reply = await fetch(`${url}&_v.query=%0aSet-Cookie:a=b`);
    assert.equal(reply.status, 400);
    assert.equal(((await reply.json()) as { error: { field: string } }).error.field, 'query');
    assert.equal((await fetch(`${url}&_v.query=a=b`, { redirect: 'manual' })).status, 301);
  });

  test('to HEAD has the headers and no content, also for an operation', async (t) => {
    const site = await startSite(t, { ...file, ini });
    const place = `_v.origin=${encodeURIComponent(site.url)}&_v.path=/big.bin`;
    const answer = await site.raw(
      `HEAD /svc1/userinterface/get_content?${place} HTTP/1.1\r\n${head}Connection: close\r\n\r\n`,
    );
    assert.match(answer, /^HTTP\/1\.1 200 [^]*\r\ncontent-length: 4194304\r\n[^]*\r\n\r\n$/i);
  });
});
