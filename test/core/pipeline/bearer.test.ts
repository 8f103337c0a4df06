import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { WebSocket } from 'ws';
import { once } from 'node:events';
import { startSite, type Answer } from '../../harness.ts';
import { httpSource } from '../outbound/sources.ts';

suite('an API key as a bearer token', () => {
  test('works as the header apikey does; apikey takes precedence', async (t) => {
    const site = await startSite(t);
    const status = async (headers: Readonly<Record<string, string>>) => {
      const reply = await fetch(`${site.url}/svc1/server/status`, { headers });
      return [reply.status, reply.headers.get('www-authenticate')];
    };
    const key = site.adminKey;
    assert.deepEqual(await status({ authorization: `Bearer ${key}` }), [200, null]);
    assert.deepEqual(await status({ authorization: `bearer  ${key}` }), [200, null]);
    for (const headers of [
      {},
      { authorization: 'Bearer wmk_wrong' },
      { authorization: `Basic ${key}` },
      { authorization: `Bearer x${key}` },
      { authorization: `Bearer ${key} x` },
      { apikey: 'wmk_wrong', authorization: `Bearer ${key}` },
    ]) {
      assert.deepEqual(await status(headers), [401, 'apikey, Bearer'], JSON.stringify(headers));
    }
    assert.deepEqual(await status({ apikey: key, authorization: 'Bearer wmk_x' }), [200, null]);
    const page = await fetch(`${site.url}/none`, { headers: { authorization: `Bearer ${key}` } });
    assert.match(page.headers.get('server-timing') ?? '', /^waymark/);
    assert.ok(!site.logged().includes(key));
  });

  test('authenticates a websocket', async (t) => {
    const site = await startSite(t);
    const websocket = new WebSocket(`${site.url.replace('http', 'ws')}/svc1/ws`, {
      headers: { authorization: `Bearer ${site.adminKey}` },
    });
    t.after(() => {
      websocket.terminate();
    });
    await once(websocket, 'open');
    websocket.send('{"a":"svc1.server.status"}');
    const [data] = (await once(websocket, 'message')) as [Buffer];
    assert.equal((JSON.parse(data.toString()) as Answer).error, undefined);
  });

  test('is never sent to a source, even if a rule passes Authorization on', async (t) => {
    const source = await httpSource(t, (request, response) => {
      response.end(JSON.stringify(request.headers));
    });
    const enginedata = { source: `${source.origin}/*`, pass: ['authorization'] };
    const site = await startSite(t, {
      ini: '[fetch]\nallow_private = 127.0.0.0/8\n',
      rules: [{ path: '/far/*', kind: 'content.fetch', enginedata }],
    });
    const sent = async (authorization: string) => {
      const reply = await fetch(`${site.url}/far/a`, { headers: { authorization } });
      const { authorization: seen, apikey } = (await reply.json()) as Record<string, string>;
      return [seen, apikey];
    };
    assert.deepEqual(await sent(`Bearer ${site.adminKey}`), [undefined, undefined]);
    assert.deepEqual(await sent('Bearer wmk_wrong'), [undefined, undefined]);
    assert.deepEqual(await sent('Bearer eyJ.eyJ.x'), ['Bearer eyJ.eyJ.x', undefined]);
  });
});
