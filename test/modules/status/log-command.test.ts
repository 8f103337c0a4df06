import assert from 'node:assert/strict';
import { PassThrough, Readable } from 'node:stream';
import { once } from 'node:events';
import { suite, test } from 'node:test';
import { run } from '../../../src/cli/cli.ts';
import { httpSource } from '../../core/outbound/sources.ts';
import { startSite } from '../../harness.ts';
import { runHere } from '../../cli/here.ts';

suite('commands about a running server', () => {
  test('waymark log access prints requests as they come, without control characters', async (t) => {
    const site = await startSite(t);
    const out = new PassThrough({ encoding: 'utf8' });
    const running = run(['log', 'access', '--status', '4xx'], {
      ...{ out, err: new PassThrough(), input: () => Readable.from([]) },
      env: { WAYMARK_URL: site.url, WAYMARK_APIKEY: site.adminKey },
      readConfig: () => Promise.reject(new Error('no file is read')),
    });
    let text = '';
    const lines = (async () => {
      while (!text.includes('\n')) text += String((await once(out, 'data'))[0]);
    })();
    // The command may not have been answered yet.
    while (!text.includes('\n')) {
      await site.raw('GET /gone\x1b[2J?apikey=wmk_secret HTTP/1.1\r\nHost: x\r\n\r\n');
      await (await fetch(`${site.url}/gone?apikey=wmk_secret`)).text();
    }
    await lines;
    assert.match(text, / 40[04] /);
    assert.ok(!text.includes('\x1b') && !text.includes('wmk_secret'), text);
    await site.waymark.stop(0);
    assert.equal(await running, 1);
  });

  test('waymark source list and waymark server say what the operations do', async (t) => {
    const { origin } = await httpSource(t, (_request, response) => {
      response.end('far');
    });
    const site = await startSite(t, {
      ini: '[fetch]\nallow_private = 127.0.0.0/8\n',
      rules: [{ path: '/far/*', kind: 'content.fetch', enginedata: { source: `${origin}/*` } }],
    });
    const env = { WAYMARK_URL: site.url, WAYMARK_APIKEY: site.adminKey };
    assert.match((await runHere(['source', 'list'], { env })).err, /fetched nothing yet/);
    await (await fetch(`${site.url}/far/x`)).text();
    const [heading = '', row = ''] = (await runHere(['source', 'list'], { env })).out.split('\n');
    assert.match(heading, /^ORIGIN +REQUESTS +FAILED +5XX/);
    assert.match(row, new RegExp(`^${origin} +1 +0 +0 `));
    const configuration = await runHere(['server', 'configuration'], { env });
    assert.equal(JSON.parse(configuration.out).file, site.iniFile);
  });
});
