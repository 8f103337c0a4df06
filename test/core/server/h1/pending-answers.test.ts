import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { NetConnectOpts, Socket } from 'node:net';
import { join } from 'node:path';
import { suite, test, type TestContext } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import fc from 'fast-check';
import { startSite } from '../../../harness.ts';
import { httpSource } from '../../outbound/sources.ts';
import { upgradeRequest } from '../websocket/socket-rig.ts';
import { startTlsSite } from '../tls/tls-rig.ts';
import {
  firstRequest,
  openUsed,
  rawConnection,
  serverSockets,
} from '../../pipeline/raw-connection.ts';
import { randomRuns } from '../../../random-runs.ts';

const ini = '[fetch]\nallow_private = 127.0.0.0/8\ncache = 0\n[log]\nformat = json\n';
/** More than the system's buffers hold for a client that does not read. */
const hugeCharacters = 12_000_000;
const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`;

const huge = { path: '/huge', kind: 'content', content: 'x'.repeat(hugeCharacters) };

/** A site that fetches `/far/*`; the test sends the responses of the source. */
async function startFar(t: TestContext, more: readonly object[] = []) {
  const { origin, server } = await httpSource(t, (_message, response) => {
    server.emit('asked', response);
  });
  const rules = [
    { path: '/far/*', kind: 'content.fetch', enginedata: { source: `${origin}/*` } },
    { path: '/page', kind: 'content', content: 'page' },
    { path: '/long', kind: 'content', content: 'x'.repeat(40_000) },
    ...more,
  ];
  const site = await startSite(t, { ini, rules });
  const client = await openUsed(t, { port: site.port, host: '127.0.0.1', allowHalfOpen: true });
  /** Requests a fetched page; resolves to the response that the test must send as its source. */
  const hold = async (request = get('/far/a')): Promise<ServerResponse> => {
    client.socket.write(request);
    const [response] = (await once(server, 'asked')) as [ServerResponse];
    return response;
  };
  return { site, client, server, hold };
}

suite('a fetched page', () => {
  test('is sent before the responses to later requests', async (t) => {
    const sockets = serverSockets(t);
    const { client, hold } = await startFar(t);
    const socket = sockets.at(-1) ?? assert.fail();
    const source = await hold();
    const post = 'POST /page HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n';
    const ahead = [get('/page') + get('/none'), post, `xy${get('/page')}`];
    for (const bytes of ahead) client.socket.write(bytes);
    // The server reads no more until it has answered.
    while (!socket.isPaused()) await nextTurn();
    source.end('far');
    const contents: string[] = [];
    for (let at = 0; at < 5; at += 1) {
      const { statusLine, content } = await client.answers.next();
      contents.push(statusLine.split(' ')[1] === '200' ? content : statusLine);
    }
    assert.deepEqual(contents, [
      ...['far', 'page', 'HTTP/1.1 404 Not Found', 'HTTP/1.1 405 Method Not Allowed', 'page'],
    ]);
    assert.equal((await client.ask(get('/page'))).content, 'page');
  });

  test('is aborted when its client disconnects or closes its side', async (t) => {
    for (const leave of [
      (socket: Socket) => socket.resetAndDestroy(),
      (socket: Socket) => socket.end(),
    ]) {
      const { site, client, hold } = await startFar(t);
      const source = await hold();
      const isLeft = once(source, 'close');
      leave(client.socket as Socket);
      await isLeft;
      assert.equal(source.writableFinished, false);
      assert.equal(await client.answers.rest(), '');
      while (!/"target":"\/far\/a".*"cut":true/.test(site.logged())) await nextTurn();
    }
  });

  test('delays a stop, and is counted as in flight', async (t) => {
    const { site, client, hold } = await startFar(t);
    const source = await hold();
    const metrics = await (await fetch(`${site.url}/svc1/metrics`)).text();
    assert.match(metrics, /^waymark_requests_in_flight 2$/m);
    const stopped = site.waymark.stop(10_000);
    source.end('far');
    assert.equal((await client.answers.next()).content, 'far');
    assert.equal(await client.answers.rest(), '');
    await stopped;
    assert.match(site.logged(), /"target":"\/far\/a","status":200,"bytes":3/);
  });

  test('is cut off by an immediate stop', async (t) => {
    const { site, client, hold } = await startFar(t);
    const source = await hold();
    const isLeft = once(source, 'close');
    await site.waymark.stop(0);
    await isLeft;
    assert.equal(await client.answers.rest(), '');
  });

  test('is sent even if the server stops in the same turn of the event loop', async (t) => {
    const sockets = serverSockets(t);
    const { site, client } = await startFar(t);
    const socket = sockets.at(-1) ?? assert.fail();
    let stopped: Promise<unknown> | undefined;
    socket.once('data', () => {
      // After the response is written, and before the turn ends.
      setImmediate(() => {
        assert.equal(socket.writableCorked, 1);
        stopped = site.waymark.stop(10_000);
      });
    });
    const { statusLine } = await client.ask(get('/missing'));
    assert.equal(statusLine, 'HTTP/1.1 404 Not Found');
    assert.equal(await client.answers.rest(), '');
    await stopped;
  });

  for (const isPrepared of [false, true]) {
    const how = isPrepared ? 'from the cache of responses' : 'that is built anew';
    test(`and a large page ${how} arrives whole, even if the server stops meanwhile`, async (t) => {
      const sockets = serverSockets(t);
      const { site, client } = await startFar(t, [huge]);
      const socket = sockets.at(-1) ?? assert.fail();
      if (isPrepared) await client.ask(get('/huge'));
      client.socket.pause();
      client.socket.write(get('/huge'));
      await once(socket, 'data');
      while (socket.writableLength === 0) await nextTurn();
      const stopped = site.waymark.stop(10_000);
      client.socket.resume();
      assert.equal((await client.answers.next()).content.length, hugeCharacters);
      assert.equal(await client.answers.rest(), '');
      assert.deepEqual(await stopped, { cut: 0 });
    });
  }

  for (const isHeld of [true, false]) {
    const when = isHeld ? 'meanwhile' : 'afterwards';
    test(`leaves the connection free for a websocket that is requested ${when}`, async (t) => {
      const { client, hold } = await startFar(t);
      const source = await hold();
      if (isHeld) client.socket.write(upgradeRequest());
      source.end('far');
      assert.equal((await client.answers.next()).content, 'far');
      if (!isHeld) client.socket.write(upgradeRequest());
      const { statusLine } = await client.answers.next();
      assert.equal(statusLine, 'HTTP/1.1 101 Switching Protocols');
    });
  }
});

suite('a connection', () => {
  test('has as many listeners after many requests as after one', async (t) => {
    const sockets = serverSockets(t);
    const { site, client, hold } = await startFar(t);
    const socket = sockets.at(-1) ?? assert.fail();
    // The server adds the listener for timeouts after a second.
    const names = () => socket.eventNames().filter((name) => name !== 'timeout');
    const listeners = () => names().map((name) => socket.listenerCount(name));
    (await hold()).end('far');
    await client.answers.next();
    const before = listeners();
    for (let at = 0; at < 1_000; at += 1) {
      await client.ask(get(at % 2 === 0 ? '/page' : `/none/${at}`));
    }
    for (let at = 0; at < 20; at += 1) {
      (await hold()).end('far');
      await client.answers.next();
    }
    assert.deepEqual(listeners(), before);
    assert.equal(site.logged().includes('"level":50'), false);
  });
});

/** Requests for all kinds of response, with their expected content. */
const kinds: readonly (readonly [request: string, content: RegExp])[] = [
  [get('/page'), /^page$/],
  [get('/none'), /^404 Not Found/],
  [get('/far/now'), /^far$/],
  [get('/long'), /^x{40000}$/],
  [firstRequest, /^{"status":"ok"}$/],
  [`HEAD ${get('/page').slice(4)}`, /^$/],
  ['POST /page HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nGET', /^405 /],
];

suite('requests in a row', () => {
  test('are answered in order, however their bytes are split', async (t) => {
    const { site, server } = await startFar(t);
    server.on('asked', (response: ServerResponse) => response.end('far'));
    const some = fc.array(fc.nat(kinds.length - 1), { minLength: 1, maxLength: 8 });
    const cuts = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 8 });
    const property = fc.asyncProperty(some, cuts, async (rows, places) => {
      const client = await openUsed(t, { port: site.port, host: '127.0.0.1' });
      const asks = rows.map((row) => kinds[row] ?? assert.fail());
      const requests = asks.map(([request]) => request);
      const text = requests.join('');
      // Splits between two requests, and at any position.
      const ends = requests.map((_, end) => requests.slice(0, end).join('').length);
      const at = [...places.map((place) => Math.floor(place * text.length)), ...ends.slice(0, 2)];
      let from = 0;
      for (const to of [...at.sort((a, b) => a - b), text.length]) {
        client.socket.write(text.slice(from, to));
        from = to;
        await nextTurn();
      }
      for (const [request, content] of asks) {
        const answer = await client.answers.next(request.slice(0, request.indexOf(' ')));
        assert.match(answer.content, content);
      }
      client.socket.destroy();
    });
    await fc.assert(property, { numRuns: randomRuns(60) });
    assert.doesNotMatch(site.logged(), /"level":50/);
  });
});

suite('requests on one connection', () => {
  test('are answered over TLS', async (t) => {
    const site = await startTlsSite(t);
    const client = rawConnection(t, await site.shake());
    for (const request of [get('/none'), get('/none'), firstRequest, get('/none')]) {
      const { statusLine } = await client.ask(request);
      const expected = request === firstRequest ? 'HTTP/1.1 200 OK' : 'HTTP/1.1 404 Not Found';
      assert.equal(statusLine, expected);
    }
    const last = await client.ask(
      get('/none').replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'),
    );
    assert.ok(last.fields.includes('Connection: close'));
    assert.equal(await client.answers.rest(), '');
  });

  test('are answered on a unix socket', async (t) => {
    const site = await startSite(t, { server: 'listen[] = unix:w.sock' });
    const where: NetConnectOpts = { path: join(site.folder, 'w.sock') };
    const client = await openUsed(t, where, get('/none'));
    for (const request of [get('/none'), firstRequest, get('/none')]) {
      const { statusLine } = await client.ask(request);
      assert.equal(statusLine === 'HTTP/1.1 200 OK', request === firstRequest);
    }
  });
});
