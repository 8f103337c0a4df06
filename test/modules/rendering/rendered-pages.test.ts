import assert from 'node:assert/strict';
import { after, suite, test } from 'node:test';
import { startSite, type TestSite } from '../../harness.ts';

/** A rule of the engine template that the server renders. */
function rendered(path: string, enginedata: object, more: object = {}): object {
  return {
    path,
    kind: 'content',
    engine: 'template',
    enginedata: { render: 'server', ...enginedata },
    ...more,
  };
}

const site = startSite(
  { after },
  {
    server: 'trust_proxy = 127.0.0.0/8',
    ini:
      '[auth]\nuser_header = X-User\n[disk.site]\nroot = site\n' +
      '[disk.site.headers]\nReferrer-Policy = same-origin\n',
    files: {
      'site/frame.html':
        '<!doctype html><html><head><title>Frame</title></head><body><header>Shop</header>' +
        '<main data-waymark>…<script src="/svc1/engine.js" nonce="n1"></script></main></body></html>',
    },
    rules: [
      rendered('/lamps/*', {
        title: '{{ capture | upcase }} & co',
        template: `<h1>{{ capture }}</h1>${'<p>A lamp of brass.</p>'.repeat(100)}`,
      }),
      rendered('/find', { template: '<h1>{{ query.q }}</h1>' }),
      rendered('/me', { template: '<h1>{{ user.name | default: "nobody" }}</h1>' }),
      rendered('/framed', { page: '/frame.html', template: '<h1>x</h1>', css: 'h1 { margin: 0 }' }),
      rendered('/gone', { template: '<h1>Gone</h1>' }, { httpresponse: 410 }),
      rendered('/broken', { template: '{% if %}' }),
      rendered('/broken-with-html', { template: '{% if %}', html: '<h1>Instead</h1>' }),
      rendered('/endless', {
        template: '{% for i in (1..9999) %}{% for j in (1..9999) %}{{ i }}{% endfor %}{% endfor %}',
      }),
      rendered('/by-query', {
        template: '<h1>others</h1>',
        when: [{ if: { query: { a: '1' } }, enginedata: { template: '<h1>one</h1>' } }],
      }),
      rendered('/time', { template: "{{ 'now' | date: '%Y' }}" }),
      {
        path: '/plain',
        kind: 'content',
        engine: 'template',
        enginedata: { template: '<h1>x</h1>' },
      },
    ],
  },
);

async function get(path: string, headers: Record<string, string> = {}, method = 'GET') {
  const { url } = await site;
  const reply = await fetch(url + path, { headers, method });
  return { status: reply.status, headers: reply.headers, text: await reply.text() };
}

const heading = (text: string): string | undefined => /<h1>(.*?)<\/h1>/s.exec(text)?.[1];

test('a page that the server renders has its title and content without JavaScript', async () => {
  const { status, headers, text } = await get('/lamps/tern');
  assert.equal(status, 200);
  assert.equal(headers.get('content-type'), 'text/html; charset=utf-8');
  assert.equal(headers.get('cache-control'), 'no-cache');
  assert.equal(heading(text), 'tern');
  assert.match(text, /<title[^>]*>TERN &amp; co<\/title>/);
});

test('it is sent as a stored page is: with an entity tag, 304, HEAD and content codings', async () => {
  const { headers, text } = await get('/lamps/tern', { 'accept-encoding': 'identity' });
  const etag = headers.get('etag') ?? '';
  assert.match(etag, /^"/);
  for (let times = 0; times < 3; times += 1) {
    const again = { 'if-none-match': etag, 'accept-encoding': 'identity' };
    assert.equal((await get('/lamps/tern', again)).status, 304);
  }
  const head = await get('/lamps/tern', {}, 'HEAD');
  assert.deepEqual([head.status, head.text], [200, '']);
  // The first request queues the compression; the coding is there once it is done.
  let coded = await get('/lamps/tern', { 'accept-encoding': 'gzip' });
  while (coded.headers.get('content-encoding') === null) {
    coded = await get('/lamps/tern', { 'accept-encoding': 'gzip' });
  }
  assert.equal(coded.text, text);
  const { url } = await site;
  assert.equal((await fetch(`${url}/lamps/tern`, { method: 'POST' })).status, 405);
});

test('it changes with its rule', async (t) => {
  const own = await startSite(t, { rules: [rendered('/a', { template: '<h1>1</h1>' })] });
  const text = async () => (await fetch(`${own.url}/a`)).text();
  assert.equal(heading(await text()), '1');
  const { data } = await own.call('svc1.userinterface.list', { path: '/a' });
  const { id } = (data as { rows: { id: string }[] }).rows[0] ?? { id: '' };
  await own.call('svc1.userinterface.edit', {
    id,
    enginedata: { render: 'server', template: '<h1>2</h1>' },
  });
  assert.equal(heading(await text()), '2');
});

test('values of the address are escaped, and the page depends on the variables that it mentions', async () => {
  assert.equal(heading((await get('/find?q=%3Cscript%3E')).text), '&lt;script&gt;');
  assert.equal(heading((await get('/find?q=other')).text), 'other');
  const one = await get('/lamps/tern?utm=1', { 'accept-encoding': 'identity' });
  const other = await get('/lamps/tern?utm=2', { 'accept-encoding': 'identity' });
  assert.equal(one.headers.get('etag'), other.headers.get('etag'));
});

test('a page that mentions the user is private, and each user gets their own', async () => {
  const nobody = await get('/me');
  assert.equal(heading(nobody.text), 'nobody');
  for (const name of ['ada', 'bob', 'ada']) {
    const { text, headers } = await get('/me', { 'x-user': name });
    assert.equal(heading(text), name);
    assert.equal(headers.get('cache-control'), 'private, no-cache');
    assert.match(headers.get('vary') ?? '', /Cookie/);
  }
  assert.equal(heading((await get('/me')).text), 'nobody');
});

test('it is rendered into the page that its rule names, with the header fields of that page', async () => {
  const { text, headers } = await get('/framed');
  assert.match(text, /<header>Shop<\/header><main data-waymark="" data-waymark-server="">/);
  assert.match(text, /<style data-waymark-css="" nonce="n1">h1 \{ margin: 0 \}<\/style>/);
  assert.match(text, /<script src="\/svc1\/engine\.js" nonce="n1"><\/script>.*<\/head>/s);
  assert.equal(headers.get('referrer-policy'), 'same-origin');
});

test('a branch of `when` decides what is rendered', async () => {
  assert.equal(heading((await get('/by-query?a=1')).text), 'one');
  const other = await get('/by-query?a=2');
  assert.equal(heading(other.text), 'others');
  assert.equal(other.headers.get('cache-control'), 'private, no-cache');
});

test('the status of the rule is kept, and a page without `render` is left to the browser', async () => {
  const gone = await get('/gone');
  assert.deepEqual([gone.status, heading(gone.text)], [410, 'Gone']);
  assert.equal(heading((await get('/plain')).text), undefined);
  assert.equal((await get('/time')).text.includes(String(new Date().getUTCFullYear())), true);
});

suite('a template that fails', () => {
  let started: TestSite;
  test('is answered with 500 and a message, and the log has the reason', async () => {
    started = await site;
    const { status, text } = await get('/broken', { accept: 'text/html' });
    assert.equal(status, 500);
    assert.match(text, /its template failed/);
    assert.match(started.logged(), /the template of a page failed/);
  });
  test('is replaced by the HTML of its rule, if there is any', async () => {
    const { status, text } = await get('/broken-with-html');
    assert.deepEqual([status, heading(text)], [200, 'Instead']);
    assert.doesNotMatch(text, /data-waymark-server/);
  });
  test('stops after a while, and meanwhile and afterwards other pages are answered', async () => {
    const endless = get('/endless');
    const { url } = await site;
    assert.equal((await fetch(`${url}/svc1/health`)).status, 200);
    assert.equal((await endless).status, 500);
    assert.equal(heading((await get('/find?q=after')).text), 'after');
  });
});
