import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { suite, test } from 'node:test';
import { startSite } from '../harness.ts';
import { httpSource } from '../outbound/sources.ts';

/** What a site needs to fetch from this machine. */
const ini = '[fetch]\nallow_private = 127.0.0.0/8\ncache = 0\n';

suite('several sources of a page', () => {
  test('serve it while one of them is down, as explain and the metrics tell', async (t) => {
    const { origin } = await httpSource(t, (_, response) => response.end('there'));
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const gone = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.close();
    const enginedata = { source: [`${gone}/*`, `${origin}/*`] };
    const rules = [{ path: '/far/*', kind: 'content.fetch', enginedata }];
    const site = await startSite(t, { ini, rules });
    for (let turn = 0; turn < 4; turn += 1) {
      const answer = await fetch(`${site.url}/far/a`);
      assert.equal(await answer.text(), 'there');
    }
    const { data } = await site.call('userinterface.explain', { path: '/far/a' });
    const [, note] = (data as { readonly notes: readonly string[] }).notes;
    assert.match(note ?? '', new RegExp(`^${gone} has failed and is set aside`));
    const metrics = await (await fetch(`${site.url}/svc1/metrics`)).text();
    assert.match(metrics, new RegExp(`waymark_fetch_source_set_aside.source="${gone}". 1\n`));
    assert.match(metrics, new RegExp(`waymark_fetch_source_answers_total.source="${origin}". 4\n`));
    assert.match(site.logged(), /a source has failed and is set aside/);
  });
});
