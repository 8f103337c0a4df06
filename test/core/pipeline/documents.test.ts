import assert from 'node:assert/strict';
import { appendFile } from 'node:fs/promises';
import { suite, test } from 'node:test';
import { readTestConfig, startSite } from '../../harness.ts';

for (const name of ['openapi', 'asyncapi']) {
  suite(`${name}.json`, () => {
    test('is public, also for pages of other origins, and gets a 304 when it is known', async (t) => {
      const { url } = await startSite(t);
      const file = `${url}/svc1/${name}.json`;
      // A compressed one is served once it is ready, with another length and ETag.
      const plain = { 'accept-encoding': 'identity' };
      const first = await fetch(file, { headers: { ...plain, origin: 'https://tool.example' } });
      assert.equal(first.status, 200);
      assert.equal(first.headers.get('content-type'), 'application/json');
      assert.equal(first.headers.get('access-control-allow-origin'), '*');
      assert.equal(first.headers.get('cache-control'), 'public, no-cache');
      const length = (await first.arrayBuffer()).byteLength;

      const head = await fetch(file, { method: 'HEAD', headers: plain });
      assert.equal(head.status, 200);
      assert.equal(head.headers.get('content-length'), String(length));

      const etag = first.headers.get('etag') ?? '';
      assert.match(etag, /^"/);
      const again = await fetch(file, { headers: { ...plain, 'if-none-match': etag } });
      assert.equal(again.status, 304);
      assert.equal(await again.text(), '');

      const posted = await fetch(file, { method: 'POST' });
      assert.equal(posted.status, 405);
      assert.equal(posted.headers.get('allow'), 'GET, HEAD, OPTIONS');
    });
  });
}

const places = [
  ['the origin of the request', '', '', (url: string) => url],
  ['public_url', 'public_url = https://shop.example', '', () => 'https://shop.example'],
  [
    'public_url and the base',
    'public_url = https://shop.example\nbase = /shop',
    '/shop',
    () => 'https://shop.example/shop',
  ],
] as const;

for (const [name, server, base, expected] of places) {
  test(`the documents name the URL of the server: ${name}`, async (t) => {
    const { url } = await startSite(t, { server });
    // oxlint-disable-next-line typescript/no-explicit-any -- each test knows the fields that it reads
    const read = async (file: string): Promise<any> =>
      (await fetch(`${url}${base}/svc1/${file}`)).json();
    const where = new URL(expected(url));
    assert.deepEqual((await read('openapi.json')).servers, [{ url: expected(url) }]);
    const { servers } = await read('asyncapi.json');
    assert.deepEqual(servers.here, {
      host: where.host,
      protocol: where.protocol === 'https:' ? 'wss' : 'ws',
      ...(base !== '' && { pathname: base }),
    });
  });
}

test('each hostname gets a document with its own URL', async (t) => {
  const site = await startSite(t);
  for (const host of ['a.example', 'b.example', 'a.example']) {
    const reply = await site.raw(
      `GET /svc1/openapi.json HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
    );
    assert.match(reply, new RegExp(`"servers":\\[\\{"url":"http://${host}"\\}\\]`));
  }
});

test('a changed ini file changes the documents', async (t) => {
  const site = await startSite(t);
  const read = async () => (await fetch(`${site.url}/svc1/openapi.json`)).text();
  assert.match(await read(), /"security":\[\{\},\{"apikey":\["render"\]\},\{"bearer"/);
  await appendFile(site.iniFile, '\n[auth]\nanonymous =\n');
  site.waymark.reload({ ok: true, config: await readTestConfig(site.iniFile) });
  assert.match(await read(), /"security":\[\{"apikey":\["render"\]\},\{"bearer"/);
});
