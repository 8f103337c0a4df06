import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { suite, test } from 'node:test';
import { readTestConfig, startSite } from '../../../harness.ts';
import { httpSource } from '../../outbound/sources.ts';
import { openUsed } from '../../pipeline/raw-connection.ts';

const ini = '[fetch]\nallow_private = 127.0.0.0/8\n[log]\nformat = json\n';
/** A request with a header for which the server caches no response. */
const request = (path: string, fields = '') =>
  `GET ${path} HTTP/1.1\r\nHost: localhost\r\nX-Odd: 1\r\n${fields}\r\n`;

suite('a request that is repeated byte for byte on a connection', () => {
  test('gets the current response each time', async (t) => {
    let answers = 0;
    const { origin } = await httpSource(t, ({ headers }, response) => {
      answers += 1;
      response.writeHead(200, { 'Cache-Control': 'no-store' });
      response.end(`${answers} ${String(headers['x-odd'])} ${headers.accept ?? ''}`);
    });
    const rules = [
      { path: '/far/*', kind: 'content.fetch', enginedata: { source: `${origin}/*` } },
    ];
    const site = await startSite(t, { ini, rules });
    const connection = await openUsed(t, { port: site.port, host: '127.0.0.1' });
    const contentOf = async (path: string, fields?: string) =>
      (await connection.ask(request(path, fields))).content;
    assert.equal(await contentOf('/far/a'), '1 1 ');
    assert.equal(await contentOf('/far/a'), '2 1 ');
    assert.equal(await contentOf('/far/a', 'Accept: a/b\r\n'), '3 1 a/b');
    assert.equal(await contentOf('/far/a'), '4 1 ');
    assert.match(await contentOf('/late'), /404/);
    const late = { path: '/late', kind: 'content', content: 'here' };
    assert.equal((await site.call('svc1.userinterface.insert', late)).status, 200);
    assert.equal(await contentOf('/late'), 'here');
  });

  test('is subject to the current configuration each time', async (t) => {
    const site = await startSite(t, { ini });
    const connection = await openUsed(t, { port: site.port, host: '127.0.0.1' });
    const ask = () => connection.ask(request('/none', 'X-Forwarded-For: 203.0.113.9\r\n'));
    const clients = () =>
      [...site.logged().matchAll(/"address":"([^"]*)"[^\n]*"target":"\/none"/g)].map(
        ([, one]) => one,
      );
    await ask();
    await ask();
    assert.deepEqual(clients(), ['127.0.0.1', '127.0.0.1']);
    const text = await readFile(site.iniFile, 'utf8');
    await writeFile(site.iniFile, text.replace('[server]', '[server]\ntrust_proxy = 127.0.0.0/8'));
    site.waymark.reload({ ok: true, config: await readTestConfig(site.iniFile) });
    await ask();
    assert.deepEqual(clients(), ['127.0.0.1', '127.0.0.1', '203.0.113.9']);
  });
});
