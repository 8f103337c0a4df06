import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { type AddressInfo, type Socket, connect, createServer as createRaw } from 'node:net';
import { type TestContext, suite, test } from 'node:test';
import { WebSocket } from 'ws';
import {
  createSharedLimits,
  tunnelsPerAddressMax,
} from '../../../../src/core/fair/shared-limits.ts';
import { parseHttpDate } from '../../../../src/core/http/date.ts';
import { Tunnels, tunnelCheckMs, tunnelIdleMs } from '../../../../src/core/server/h1/tunnels.ts';
import { Failure } from '../../../../src/core/values/failure.ts';
import { freePort } from '../../../free-port.ts';
import { readTestConfig, startSite } from '../../../harness.ts';
import { httpSource, rawSource } from '../../outbound/sources.ts';
import { AnswerReader } from '../../pipeline/answers.ts';
import { upgradeRequest } from '../websocket/socket-rig.ts';
import { socketSource } from './socket-source.ts';

const ini = '[fetch]\nallow_private = 127.0.0.0/8\n';

/** A site that forwards `/live/*` to sources. */
async function siteTo(
  t: TestContext,
  source: string | readonly string[],
  { methods = ['GET', 'UPGRADE'], headers = {} } = {},
) {
  const enginedata = { source, methods, headers };
  return startSite(t, { ini, rules: [{ path: '/live/*', kind: 'content.fetch', enginedata }] });
}

/** Opens a websocket at a site. */
async function open(
  t: TestContext,
  url: string,
  { path = '/live/', protocols = [] as string[], headers = {} } = {},
) {
  const socket = new WebSocket(url.replace('http', 'ws') + path, protocols, { headers });
  t.after(() => {
    socket.terminate();
  });
  await once(socket, 'open');
  return socket;
}

/** The response to a raw client, up to the end of the connection. */
async function refusal(t: TestContext, port: number, request = upgradeRequest()) {
  const socket = connect(port, '127.0.0.1');
  t.after(() => socket.destroy());
  let text = '';
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    text += chunk;
  });
  socket.write(request);
  await once(socket, 'end');
  return text;
}

const live = upgradeRequest({}, 'GET /live/ HTTP/1.1');

function newTunnels(): Tunnels {
  return new Tunnels({ now: Date.now, limit: createSharedLimits().tunnels });
}

suite('a websocket to a source', () => {
  test('is opened at the URL of the page, with the headers of client and rule', async (t) => {
    let asked: IncomingMessage | undefined;
    const origin = await socketSource(t, (_, request) => {
      asked = request;
    });
    const site = await siteTo(t, `${origin}/app/*`, { headers: { 'X-Key': 'k' } });
    const socket = await open(t, site.url, {
      path: '/live/a?b=c',
      protocols: ['one', 'two'],
      headers: { Cookie: 'secret=1', 'X-Own': 'o' },
    });
    assert.equal(socket.protocol, 'two');
    assert.equal(asked?.url, '/app/a?b=c');
    const { cookie, via, ...seen } = asked.headers;
    assert.deepEqual([seen['x-key'], seen['x-own'], cookie], ['k', 'o', undefined]);
    assert.match(via ?? '', /^1\.1 waymark-/);
    assert.match(site.logged(), / 101 GET [^\n]*\/live\/a\?b=c [^\n]*rule:/);
  });

  test('is answered with a Date, as the websocket of the operations is', async (t) => {
    const origin = await socketSource(t, () => undefined);
    const site = await siteTo(t, `${origin}/*`);
    for (const path of ['/live/', '/svc1/ws']) {
      const socket = connect(site.port, '127.0.0.1');
      t.after(() => socket.destroy());
      socket.write(upgradeRequest({}, `GET ${path} HTTP/1.1`));
      const { statusLine, fields } = await new AnswerReader(socket).next();
      assert.equal(statusLine, 'HTTP/1.1 101 Switching Protocols');
      const dates = fields.filter((line) => line.startsWith('Date: '));
      assert.equal(dates.length, 1, path);
      assert.ok(parseHttpDate(dates[0]?.slice(6) ?? '', Date.now()) !== undefined);
    }
  });

  test('passes on what both sides send, unchanged', async (t) => {
    const origin = await socketSource(t, (socket) => {
      socket.send('welcome');
      socket.on('message', (data, isBinary) => {
        socket.send(data, { binary: isBinary });
      });
      socket.on('ping', () => {
        socket.send('pinged');
      });
    });
    const site = await siteTo(t, `${origin}/*`);
    const socket = new WebSocket(`${site.url.replace('http', 'ws')}/live/`);
    const [welcome] = (await once(socket, 'message')) as [Buffer];
    assert.equal(welcome.toString(), 'welcome');
    const large = randomBytes(8 * 2 ** 20);
    socket.send(large);
    const [echoed, isBinary] = (await once(socket, 'message')) as [Buffer, boolean];
    assert.ok(isBinary);
    assert.equal(digest(echoed), digest(large));
    socket.ping();
    assert.equal(String((await once(socket, 'message'))[0]), 'pinged');
    socket.close(4_001, 'enough');
    assert.deepEqual((await once(socket, 'close')).map(String), ['4001', 'enough']);
  });

  test('ends on both sides when one side ends', async (t) => {
    const closed: Promise<unknown>[] = [];
    const sockets: WebSocket[] = [];
    const origin = await socketSource(t, (socket) => {
      sockets.push(socket);
      closed.push(once(socket, 'close'));
    });
    const site = await siteTo(t, `${origin}/*`);
    const first = await open(t, site.url);
    first.terminate();
    await closed[0];
    const second = await open(t, site.url);
    sockets[1]?.terminate();
    const [code] = (await once(second, 'close')) as [number];
    assert.equal(code, 1_006);
  });

  test('goes to another source if the first is down', async (t) => {
    const origin = await socketSource(t, (socket) => {
      socket.send('here');
    });
    const site = await siteTo(t, [`http://127.0.0.1:${await freePort()}/*`, `${origin}/*`]);
    await open(t, site.url);
    await open(t, site.url);
  });

  test('survives a reload, and is counted in the metrics', async (t) => {
    const origin = await socketSource(t, (socket) => {
      socket.on('message', (data) => {
        socket.send(data);
      });
    });
    const site = await siteTo(t, `${origin}/*`);
    const socket = await open(t, site.url);
    for (let turn = 0; turn < 3; turn += 1) {
      site.waymark.reload({ ok: true, config: await readTestConfig(site.iniFile) });
      socket.send(`after ${turn}`);
      assert.equal(String((await once(socket, 'message'))[0]), `after ${turn}`);
    }
    const metrics = await (await fetch(`${site.url}/svc1/metrics`)).text();
    assert.match(metrics, /^waymark_tunnels 1$/m);
  });

  test('waits for a long response before it on its connection', async (t) => {
    const page = 'a'.repeat(8 * 2 ** 20);
    const { origin } = await httpSource(t, (_, response) => {
      response.writeHead(200, { 'Content-Length': page.length }).end(page);
    });
    const site = await siteTo(t, `${origin}/*`);
    const get = 'GET /live/page HTTP/1.1\r\nHost: localhost\r\n\r\n';
    const behind = upgradeRequest({}, 'GET /elsewhere HTTP/1.1');
    const answers = await refusal(t, site.port, get + behind);
    assert.deepEqual(
      [...answers.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status),
      ['200', '404'],
    );
    assert.ok(answers.length > page.length);
  });

  test('ends when the server stops', async (t) => {
    const ended = Promise.withResolvers<unknown>();
    const origin = await socketSource(t, (socket) => {
      socket.once('close', ended.resolve);
    });
    const site = await siteTo(t, `${origin}/*`);
    const socket = await open(t, site.url);
    const closed = once(socket, 'close');
    await site.waymark.stop(5_000);
    await Promise.all([closed, ended.promise]);
  });
});

suite('a websocket is refused', () => {
  test('with 404 if no rule passes it on; no source gets a request', async (t) => {
    let asked = 0;
    const origin = await socketSource(t, () => (asked += 1));
    const site = await siteTo(t, `${origin}/*`, { methods: ['GET', 'POST'] });
    assert.match(await refusal(t, site.port, live), /^HTTP\/1\.1 404 /);
    const other = upgradeRequest({}, 'GET /elsewhere HTTP/1.1');
    assert.match(await refusal(t, site.port, other), /^HTTP\/1\.1 404 /);
    assert.equal(asked, 0);
  });

  test('with the response of its source', async (t) => {
    const { origin } = await httpSource(t, () => undefined);
    const { origin: strict } = await rawSource(
      t,
      'HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic\r\nContent-Length: 6\r\n\r\nno key',
    );
    assert.notEqual(origin, strict);
    const site = await siteTo(t, `${strict}/*`);
    const answer = await refusal(t, site.port, live);
    assert.match(
      answer,
      /^HTTP\/1\.1 401 [\s\S]*WWW-Authenticate: Basic\r\n[\s\S]*\r\n\r\nno key$/,
    );
  });

  for (const [what, answer] of [
    ['is no HTTP', 'hello\r\n\r\n'],
    ['opens something else', 'HTTP/1.1 101 A\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n'],
    ['says 101 of nothing', 'HTTP/1.1 101 A\r\n\r\n'],
    ['has more to say than a refusal', `HTTP/1.1 403 A\r\n\r\n${'a'.repeat(100_000)}`],
  ] as const) {
    test(`with 502 if the source ${what}`, async (t) => {
      const { origin } = await rawSource(t, answer);
      const site = await siteTo(t, `${origin}/*`);
      assert.match(await refusal(t, site.port, live), /^HTTP\/1\.1 502 /);
    });
  }

  test('and its endless source is closed once the client has gone', async (t) => {
    const [asked, left] = [Promise.withResolvers<unknown>(), Promise.withResolvers<unknown>()];
    const { origin } = await httpSource(t, (_, response) => {
      let sent = 0;
      const events = setInterval(() => {
        response.write('data: a\n\n');
        // By then, the head of the answer has come to the site.
        if ((sent += 1) === 10) asked.resolve(undefined);
      }, 10);
      response.once('close', () => {
        clearInterval(events);
        left.resolve(undefined);
      });
    });
    const site = await siteTo(t, `${origin}/*`);
    const client = connect(site.port, '127.0.0.1').on('error', () => undefined);
    client.write(live);
    await asked.promise;
    client.resetAndDestroy();
    await left.promise;
  });

  test('with 429 if its address has too many, with 503 if all together have too many', () => {
    const tunnels = newTunnels();
    const take = (address: number) => tunnels.take(`192.0.2.${address}`);
    const places = Array.from({ length: tunnelsPerAddressMax }, () => take(1));
    assert.throws(() => take(1), { code: 'rate_limited', retryAfterSeconds: 1 });
    // Each further address takes what it gets: never more than it leaves for others.
    const isRefused = (address: number): boolean => {
      try {
        for (;;) take(address);
      } catch (error) {
        return error instanceof Failure && error.code === 'unavailable';
      }
    };
    let address = 2;
    while (!isRefused(address)) address += 1;
    assert.throws(() => take(address), { code: 'unavailable', retryAfterSeconds: 1 });
    for (const place of places.slice(0, 2)) {
      place.release();
      place.release();
    }
    take(address + 1);
  });
});

test('an idle websocket is closed after a timeout', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const tunnels = newTunnels();
  const [[client, ours], [theirs, source]] = await Promise.all([pair(t), pair(t)]);
  tunnels.take('192.0.2.1').open(ours, Buffer.from('early'), {
    protocol: 'x',
    fields: [],
    connection: theirs,
    source: '',
  });
  const [[early]] = (await Promise.all([once(source, 'data'), once(client, 'data')])) as [
    [Buffer],
    unknown,
  ];
  assert.equal(early.toString(), 'early');
  for (const [from, to] of [
    [client, source],
    [source, client],
  ] as const) {
    t.mock.timers.tick(tunnelIdleMs);
    from.write('a');
    await once(to, 'data');
  }
  t.mock.timers.tick(tunnelIdleMs);
  assert.ok(!ours.destroyed && !theirs.destroyed);
  t.mock.timers.tick(tunnelCheckMs);
  await Promise.all([once(client, 'close'), once(source, 'close')]);
});

/** Both ends of a connection. */
async function pair(t: TestContext): Promise<[Socket, Socket]> {
  const server = createRaw().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const accepted = once(server, 'connection') as Promise<[Socket]>;
  const near = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const [far] = await accepted;
  server.close();
  for (const end of [near, far]) {
    end.on('error', () => undefined);
    t.after(() => end.destroy());
  }
  return [near, far];
}

function digest(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}
