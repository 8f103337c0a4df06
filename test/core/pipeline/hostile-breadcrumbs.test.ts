import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { breadcrumbKeyCharactersMax } from '../../../src/core/values/limits.ts';
import { startSite, type TestSite } from '../../harness.ts';
import { ask } from '../../modules/files/disk-rig.ts';

const rule = 'svc1.userinterface';
const link = (key: string) => `/svc1/userinterface.link.htm?k=${encodeURIComponent(key)}`;

async function addCrumb(site: TestSite, path: string, enginedata: object) {
  return (await site.call(`${rule}.insert`, { path, kind: 'resolve', enginedata })).data;
}

test('a target that is not a valid URL is stored, reported, and never sent', async (t) => {
  const site = await startSite(t);
  const targets: readonly string[] = [
    'javascript:alert(1)',
    'JAVASCRIPT:alert(1)',
    'java\nscript:alert(1)',
    ' javascript:alert(1)',
    '\u0001javascript:alert(1)',
    'data:text/html,<script>alert(1)</script>',
    'vbscript:msgbox(1)',
    'blob:https://shop.example/x',
    'file:///etc/passwd',
    'view-source:https://shop.example/',
    '//evil.example/',
    '///evil.example/',
    '/\\evil.example/',
    '\\\\evil.example/',
    '/\t/evil.example/',
    'https:evil.example',
    'https:\\\\evil.example',
    'https://shop.example@evil.example/',
    'https://shop.example:pass@evil.example/',
    'https://evil.example\\@shop.example/',
    '/a\r\nSet-Cookie: a=b',
    '/a\nLocation: https://evil.example/',
    '/a\u0000',
    'https://shop.example/\r\n\r\n<script>',
    'key:',
    'key:\r\n',
    'evil.example',
    '?u=https://evil.example/',
    '#',
    '',
  ];
  const check = async (target: string, at: number) => {
    const text = JSON.stringify(target);
    const when = [{ if: {}, target }];
    const [whole, part] = await Promise.all([
      addCrumb(site, `/whole/${at}`, { target }),
      addCrumb(site, `/part/${at}`, { target: '/safe', when }),
    ]);
    assert.deepEqual(whole.unknowns, ['enginedata'], text);
    assert.deepEqual(part.unknowns, ['enginedata.when[0].target'], text);
    assert.deepEqual(part.enginedata.when, when);
    const none = await ask(site.url, `/whole/${at}`);
    assert.deepEqual([none.status, none.fields.location], [404, undefined], text);
    const safe = await ask(site.url, `/part/${at}`);
    assert.deepEqual([safe.status, safe.fields.location], [302, '/safe'], text);
    for (const { fields, text: shown } of [none, safe]) {
      assert.equal(fields['set-cookie'], undefined);
      assert.ok(!/evil|script:|passwd/i.test(shown), shown);
    }
  };
  await Promise.all(targets.map(check));
});

suite('a request cannot choose the host of a redirect', () => {
  const queries = [
    'url=https://evil.example/',
    '//evil.example/',
    '/..//evil.example/',
    '@evil.example/',
    '.evil.example/',
    '\\evil.example',
    '%0d%0aLocation:%20https://evil.example/',
    '%5c%5cevil.example',
    'k=other&k=https://evil.example/',
    'next=javascript:alert(1)',
    '&&&',
    '%',
    '%00',
    'a=%ff',
  ];
  test('by its query', async (t) => {
    const site = await startSite(t);
    const forward_query = true;
    await addCrumb(site, 'path', { target: '/to', forward_query });
    await addCrumb(site, 'root', { target: '/', forward_query });
    await addCrumb(site, 'host', { target: 'https://good.example', forward_query });
    await addCrumb(site, '/visit', { target: 'https://good.example', forward_query });
    for (const query of queries) {
      for (const [where, origin] of [
        [`${link('path')}&${query}`, site.url],
        [`${link('root')}&${query}`, site.url],
        [`${link('host')}&${query}`, 'https://good.example'],
        [`/visit?${query}`, 'https://good.example'],
      ] as const) {
        const { status, fields } = await ask(site.url, where);
        assert.equal(status, 302, where);
        const location = new URL(fields.location ?? '', site.url);
        assert.equal(location.origin, origin, where);
        assert.match(fields.location ?? '', /^[\x21-\x7e]+$/);
      }
    }
  });

  test('by the part of its path that a * stands for', async (t) => {
    const site = await startSite(t);
    await addCrumb(site, '/to*', { target: 'https://good.example/*' });
    await addCrumb(site, '/in*', { target: '/in-here/*' });
    await addCrumb(site, '/as*', { target: '/*' });
    const captures = [
      ...['//evil.example/', '/evil.example', '@evil.example', ':80@evil.example', '.evil.example'],
      ...['%0d%0aX-A:%20b', '?x=//evil.example', '%3f%23', '%252e%252e', 'javascript:alert(1)'],
    ];
    for (const capture of captures) {
      for (const [path, origin] of [
        ['/to', 'https://good.example'],
        ['/in', site.url],
        ['/as', site.url],
      ] as const) {
        const { status, fields } = await ask(site.url, path + capture);
        assert.equal(fields['x-a'], undefined);
        // A control character makes the request malformed; a target may not begin with `//`.
        const isMalformed = capture.startsWith('%0d');
        const isRefused = path === '/as' && capture.startsWith('/');
        assert.equal(status, isMalformed ? 400 : isRefused ? 404 : 302, `${path}${capture}`);
        if (fields.location === undefined) continue;
        assert.equal(new URL(fields.location, site.url).origin, origin, `${path}${capture}`);
      }
    }
  });

  test('by Host, X-Forwarded-Host or Forwarded without a trusted proxy', async (t) => {
    const site = await startSite(t);
    await addCrumb(site, '/visit', { target: '/to' });
    for (const headers of [
      { host: 'evil.example' },
      { 'x-forwarded-host': 'evil.example' },
      { forwarded: 'host=evil.example;proto=https' },
    ]) {
      const { fields } = await ask(site.url, '/visit', { headers });
      assert.equal(fields.location, '/to');
    }
  });
});

suite('a key', () => {
  const odd: readonly (readonly [title: string, key: string])[] = [
    ['of quotes and markup', `"'<script>alert(1)</script>&amp;`],
    ['of separators', '?k=v&k2=v2#x;y/../..//'],
    ['of percent signs', '%00%0d%0a%2e%2e%ff%'],
    ['of names of JavaScript', '__proto__'],
    ['of other alphabets', '\u202eevil \u00e9\u4e2d\u{1f600}'],
    ['of spaces', '  a  b  '],
    ['of a URL', 'https://evil.example/'],
    ['of another key', 'key:other'],
    ['of wildcards', '***'],
    ['as long as a key can be', '\u00e9"<&%'.repeat(103).slice(0, breadcrumbKeyCharactersMax)],
  ];
  test('may contain any characters but control characters', async (t) => {
    const site = await startSite(t);
    for (const [title, key] of odd) {
      const when = [{ if: { lang: 'de' }, target: '/de' }];
      const { path, unknowns } = await addCrumb(site, key, { target: '/to', when });
      assert.deepEqual([path, unknowns], [key, []], title);
      const led = `led ${title}`;
      await addCrumb(site, led, { target: `key:${key}` });
      assert.equal((await ask(site.url, link(key))).fields.location, '/to', title);
      assert.equal((await ask(site.url, link(led))).fields.location, '/to', title);
      const { data } = await site.call(`${rule}.explain`, { k: led, lang: 'de' });
      assert.deepEqual([data.notes, data.tried.at(-1).key], [['It leads to /de.'], key], title);
    }
  });

  test('that is empty, too long or has control characters is refused', async (t) => {
    const site = await startSite(t);
    for (const key of ['', 'a\nb', 'a\u0000', '\u007f', 'x'.repeat(513)]) {
      const { status, text } = await ask(site.url, link(key), {
        headers: { accept: 'text/html' },
      });
      assert.equal(status, 400, JSON.stringify(key).slice(0, 40));
      assert.ok(!text.includes('xxx'));
    }
  });
});

test('a breadcrumb may name 60,000 users in its conditions, and at most 1,000 branches', async (t) => {
  const site = await startSite(t);
  const many = Array.from({ length: 1_000 }, (_, at) => `user-${at}`);
  const when = Array.from({ length: 60 }, () => ({ if: { user: many, lang: 'de' }, target: '/a' }));
  const { unknowns } = await addCrumb(site, '/many', { target: '/to', when });
  assert.deepEqual(unknowns, []);
  assert.equal((await ask(site.url, '/many')).fields.location, '/to');
  const over = await addCrumb(site, '/over', {
    target: '/to',
    when: Array.from({ length: 1_001 }, () => ({ if: {}, target: '/a' })),
  });
  assert.deepEqual(over.unknowns, ['enginedata']);
});

test('overlong headers of a visitor match no condition', async (t) => {
  const site = await startSite(t);
  await addCrumb(site, '/c', {
    target: '/to',
    when: [
      { if: { device: 'mobile' }, target: '/m' },
      { if: { lang: 'xx' }, target: '/x' },
    ],
  });
  for (const headers of [
    { 'user-agent': '('.repeat(20_000) },
    { 'user-agent': `${'a '.repeat(10_000)}Mobile` },
    { 'accept-language': `${'de,'.repeat(8_000)}xx` },
    { 'sec-ch-ua-platform': '"'.repeat(20_000), 'sec-ch-ua-mobile': '?'.repeat(5_000) },
    { cookie: 'waymark_lot=;'.repeat(1_500) },
  ]) {
    assert.equal((await ask(site.url, '/c', { headers })).fields.location, '/to');
  }
});
