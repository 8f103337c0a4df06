import assert from 'node:assert/strict';
import { suite, test, type TestContext } from 'node:test';
import { WebSocket, WebSocketServer } from 'ws';
import { startSite } from '../../harness.ts';
import { httpSource } from '../../core/outbound/sources.ts';

/** Applications that answer with their names, and the lines of the ini file with their sources. */
async function applications(
  t: TestContext,
  names: readonly string[],
  fields: Readonly<Record<string, string>> = {},
) {
  const seen: string[] = [];
  const lines: string[] = [];
  for (const name of names) {
    const { origin, server } = await httpSource(t, (_, response) => {
      seen.push(name);
      response.writeHead(200, fields).end(name);
    });
    const sockets = new WebSocketServer({ server });
    sockets.on('connection', (socket) => {
      socket.send(name);
    });
    t.after(() => {
      for (const socket of sockets.clients) socket.terminate();
    });
    lines.push(`source[] = ${origin}\n`);
  }
  return { seen, sources: lines.join('') };
}

/** The cookie of an answer as a browser sends it back. */
const cookieOf = (reply: Response): string =>
  reply.headers.getSetCookie().join().split(';')[0] ?? '';

suite('several sources of a proxy', () => {
  test('keep a visitor at one of them by a cookie, also for websockets', async (t) => {
    const { sources } = await applications(t, ['one', 'two']);
    const site = await startSite(t, { ini: `[proxy.app]\nbalance = cookie\n${sources}` });
    const visitors = await Promise.all(
      [1, 2, 3, 4].map(async () => {
        const reply = await fetch(site.url);
        return { cookie: cookieOf(reply), name: await reply.text() };
      }),
    );
    assert.equal(new Set(visitors.map(({ name }) => name)).size, 2);
    for (const { cookie, name } of visitors) {
      for (let turn = 0; turn < 3; turn += 1) {
        const reply = await fetch(site.url, { headers: { cookie } });
        assert.equal(await reply.text(), name);
        assert.deepEqual(reply.headers.getSetCookie(), []);
      }
      const socket = new WebSocket(site.url.replace('http', 'ws'), { headers: { cookie } });
      const text = await new Promise((resolve) => {
        socket.once('message', (data: Buffer) => {
          resolve(data.toString());
        });
      });
      socket.terminate();
      assert.equal(text, name);
    }
  });

  test('put no cookie of a visitor into the cache', async (t) => {
    const { seen, sources } = await applications(t, ['one', 'two'], {
      'cache-control': 'max-age=60',
    });
    const site = await startSite(t, { ini: `[proxy.app]\nbalance = cookie\n${sources}` });
    for (let turn = 0; turn < 3; turn += 1) {
      const reply = await fetch(site.url);
      assert.equal(await reply.text(), 'one');
      assert.deepEqual(reply.headers.getSetCookie(), []);
    }
    assert.deepEqual(seen, ['one']);
    // The cookie of a source makes no request one with credentials, whose answers are not stored.
    const cookie = 'waymark_source=12345678';
    const reply = await fetch(`${site.url}/b`, { headers: { cookie } });
    assert.match(reply.headers.get('cache-status') ?? '', /stored/);
  });

  test('get shares by weight, and keep the visitors of an address', async (t) => {
    const { seen, sources } = await applications(t, ['old', 'new']);
    const ini = (more: string) => `${more}\n${sources}`;
    const site = await startSite(t, {
      ini:
        ini('[proxy.turn]\npath = /turn/\nbalance = turn\nweight = 3, 1') +
        ini('[proxy.same]\npath = /same/\nbalance = address'),
    });
    for (let turn = 0; turn < 8; turn += 1) await (await fetch(`${site.url}/turn/`)).text();
    assert.equal(seen.filter((name) => name === 'new').length, 2);
    const names = new Set<string>();
    for (let turn = 0; turn < 4; turn += 1) {
      names.add(await (await fetch(`${site.url}/same/`)).text());
    }
    assert.equal(names.size, 1);
  });

  test('are tried as often as `retries` says', async (t) => {
    const { sources } = await applications(t, ['up']);
    const down = 'source[] = http://127.0.0.1:9\nsource[] = http://127.0.0.1:10\n';
    const site = await startSite(t, {
      ini:
        `[proxy.none]\npath = /none/\nretries = 0\n${down}${sources}` +
        `[proxy.two]\npath = /two/\nbalance = turn\n${down}${sources}`,
    });
    assert.equal((await fetch(`${site.url}/none/`)).status, 502);
    assert.equal(await (await fetch(`${site.url}/two/`)).text(), 'up');
  });
});

suite('a page rule with several sources', () => {
  test('has the same words', async (t) => {
    const { seen, sources } = await applications(t, ['one', 'two']);
    const source = sources.match(/http:\S+/g) ?? [];
    const site = await startSite(t, { ini: '[fetch]\nallow_private = 127.0.0.0/8\n' });
    const enginedata = { as: 'application', source, balance: 'turn', weights: [1, 3], retries: 1 };
    const rule = { path: '/app/*', kind: 'content.fetch', enginedata };
    await site.call('svc1.userinterface.insert', rule);
    for (let turn = 0; turn < 4; turn += 1) await (await fetch(`${site.url}/app/`)).text();
    assert.equal(seen.filter((name) => name === 'two').length, 3);
    for (const weights of [[1], [0, 0], [1, -1], [1, 'x']]) {
      const answer = await site.call('svc1.userinterface.insert', {
        ...rule,
        enginedata: { ...enginedata, weights },
      });
      assert.match(JSON.stringify(answer), /enginedata\.weights/, JSON.stringify(weights));
    }
  });
});
