import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { Json } from '../../../src/core/values/json/json.ts';
import { fetchPlan, iniSettings, sourceTargets } from '../../../src/modules/proxy/fetch-plan.ts';
import {
  rewriteCookie,
  rewriteLinks,
  rewriteUrl,
  rewriteRefresh,
  type FetchedUrl,
} from '../../../src/modules/proxy/rewrite-headers.ts';
import { pathOf } from '../../request-path.ts';
import { fetchRule } from './fetch-rig.ts';

function fetched(
  source: Json,
  path: string,
  asked: string,
  pass: readonly string[] = [],
): FetchedUrl {
  const plan = fetchPlan(fetchRule({ source, pass }, { path }));
  const [way] = sourceTargets(plan, { ...pathOf(asked), query: '' });
  assert.ok(way !== undefined);
  return { plan, ...way, origin: 'https://shop.example', path: asked };
}

/** An application of the ini file. */
function applied(
  source: string,
  path: string,
  asked: string,
  more: { readonly host?: string } = {},
): FetchedUrl {
  const ini = {
    ...{ connectTimeoutMs: undefined, bodyBytesMax: undefined, isCached: true },
    ...{ proxyProtocol: undefined, mirror: undefined },
  };
  const rule = fetchRule({ as: 'application', source, ...more }, { path, [iniSettings]: ini });
  const plan = fetchPlan(rule);
  const [way] = sourceTargets(plan, { ...pathOf(asked), query: '' });
  assert.ok(way !== undefined);
  return { plan, ...way, origin: 'https://shop.example', path: asked };
}

const wildcard = fetched('http://src.example:8080/base/*', '/shop/*', '/shop/a/b');
const root = fetched('http://src.example/*', '/*', '/a');
const stripped = fetched('http://src.example/*', '/shop/*', '/shop/a/b');
const twice = fetched('http://src.example/*', '/shop/*', '/shop/shop/b');
const one = fetched('http://src.example/app?key=s3cret', '/page', '/page');
const odd = fetched('http://src.example/b*', '/caf\xe9; x/*', '/caf\xe9; x/1');
const siblings = fetched(['http://a.example/base/*', 'http://b.example/*'], '/shop/*', '/shop/a');
const same = fetched('http://src.example/caf%C3%A9/*', '/caf\xe9/*', '/caf\xe9/a');
const samePage = fetched('http://src.example/login', '/login', '/login');
const trusted = fetched('http://src.example/base/*', '/shop/*', '/shop/a', ['Set-Cookie']);
const sameTrusted = fetched('http://src.example/shop/*', '/shop/*', '/shop/a', ['Set-Cookie']);
const pageTrusted = fetched('http://src.example/login', '/login', '/login', ['Set-Cookie']);
const nameStart = fetched('http://src.example/b*', '/shop*', '/shop1');
const below = fetched('http://src.example/api*', '/api', '/api');
const inQuery = fetched('http://src.example/get?file=*', '/shop/*', '/shop/a');

const app = applied('http://127.0.0.1:3000/', '/app/*', '/app/login');
const site = applied('http://127.0.0.1:3000', '/*', '/login');
const part = applied('http://127.0.0.1:3000', '/app/*', '/app/login');
const renamed = applied('http://127.0.0.1:3000/', '/app/*', '/app/login', { host: 'app.test' });
const clear = { ...app, origin: 'http://shop.example' };
const internal = applied('http://app.internal/', '/app/*', '/app/', { host: 'source' });
const page = applied('http://127.0.0.1:3000/app?key=s3cret', '/page', '/page');
const deep = { ...root, origin: 'https://www.shop.example' };
const deepPassed = { ...sameTrusted, origin: 'https://www.shop.example' };
const deepPart = { ...siblings, origin: 'https://www.shop.example' };
const address = { ...root, origin: 'http://127.0.0.1:8080' };

suite('a Location of the source', () => {
  const cases: readonly (readonly [string, FetchedUrl, string, string])[] = [
    ['absolute', wildcard, 'http://src.example:8080/base/x', 'https://shop.example/shop/x'],
    ['the prefix itself', wildcard, 'http://src.example:8080/base/', 'https://shop.example/shop/'],
    ['upper case', wildcard, 'HTTP://SRC.example:8080/base/x', 'https://shop.example/shop/x'],
    ['without scheme', wildcard, '//src.example:8080/base/x', 'https://shop.example/shop/x'],
    ['a path', wildcard, '/base/x', '/shop/x'],
    ['a relative path', wildcard, 'c', '/shop/a/c'],
    ['up a folder', wildcard, '../c', '/shop/c'],
    ['query and fragment', wildcard, '/base/x?a=1&b#c', '/shop/x?a=1&b#c'],
    ['another of the sources', siblings, 'http://b.example/x', 'https://shop.example/shop/x'],
    ['a query alone', wildcard, '?a=1', '/shop/a/b?a=1'],
    ['escapes', wildcard, '/base/a%20b%3Fc', '/shop/a%20b%3Fc'],
    ['bytes of UTF-8', wildcard, '/base/caf\xc3\xa9?\xc3\xbc', '/shop/caf%C3%A9?%C3%BC'],
    ['beside the prefix', wildcard, '/login', '/login'],
    ['above the prefix', wildcard, '../../login', '../../login'],
    ['climbing out', wildcard, '/base/../login', '/base/../login'],
    ['like the prefix', wildcard, '/basement', '/basement'],
    ['another port', wildcard, 'http://src.example/base/x', 'http://src.example/base/x'],
    [
      'the host that it got, in another scheme',
      wildcard,
      'https://src.example:8080/base/',
      'https://shop.example/shop/',
    ],
    ['another scheme, so another server', root, 'https://src.example/x', 'https://src.example/x'],
    ['another host', wildcard, 'https://pay.example/base/x', 'https://pay.example/base/x'],
    ['no URL', wildcard, 'http://[', 'http://['],
    ['mail', wildcard, 'mailto:a@b.example', 'mailto:a@b.example'],
    ['the whole site', root, 'http://src.example/x', 'https://shop.example/x'],
    ['two slashes are no host', root, '/.//evil.example/', 'https://shop.example//evil.example/'],
    ['a path that is visible already', stripped, '/shop/x?a=1', '/shop/x?a=1'],
    ['the folder itself', stripped, '/shop', '/shop'],
    ['a path that only begins like it', stripped, '/shopping', '/shop/shopping'],
    ['climbing out of it', stripped, '/shop/../x', '/shop/x'],
    ['a relative path in a folder of that name', twice, 'c', '/shop/shop/c'],
    ['a path of a source with a folder of that name', twice, '/shop/c', '/shop/shop/c'],
    ['an absolute URL', stripped, 'http://src.example/shop/x', 'https://shop.example/shop/shop/x'],
    ['a single page', one, 'http://src.example/app', 'https://shop.example/page'],
    ['a single page, its query', one, '/app?key=s3cret', '/page'],
    ['a single page, more query', one, '/app?key=s3cret&x=1#y', '/page?x=1#y'],
    ['a single page, other query', one, '/app?key=s3cretive', '/page?key=s3cretive'],
    ['below a single page', one, '/app/x', '/app/x'],
    ['a visible path to encode', odd, '/bx', '/caf%C3%A9;%20x/x'],
    ['a star in the query', inQuery, '/get?file=b', '/get?file=b'],
  ];
  const given: readonly (readonly [string, FetchedUrl, string, string])[] = [
    ['the host that it got', app, 'http://shop.example/done', 'https://shop.example/app/done'],
    ['in upper case', app, 'HTTPS://SHOP.example/done#a', 'https://shop.example/app/done#a'],
    ['without scheme', app, '//shop.example/done?a=1', 'https://shop.example/app/done?a=1'],
    ['visible already', app, 'https://shop.example/app/done', 'https://shop.example/app/done'],
    ['visible, but for the scheme', app, 'http://shop.example/app', 'https://shop.example/app'],
    ['another port', app, 'http://shop.example:81/done', 'http://shop.example:81/done'],
    ['a host below it', app, 'https://a.shop.example/x', 'https://a.shop.example/x'],
    ['its source', app, 'http://127.0.0.1:3000/done', 'https://shop.example/app/done'],
    ['not by mail', app, 'mailto:a@shop.example', 'mailto:a@shop.example'],
    ['the whole site', site, 'https://shop.example/x', 'https://shop.example/x'],
    ['the whole site, in http', site, 'http://shop.example/x', 'https://shop.example/x'],
    [
      'two slashes',
      site,
      'http://shop.example//evil.example/',
      'https://shop.example//evil.example/',
    ],
    ['its part of the site', part, 'http://shop.example/app/x', 'https://shop.example/app/x'],
    ['another part of the site', part, 'http://shop.example/x', 'http://shop.example/x'],
    ['the name that it got', renamed, 'http://app.test/done', 'https://shop.example/app/done'],
    ['that name in https', renamed, 'https://app.test/done', 'https://shop.example/app/done'],
    ['the host that it did not get', renamed, 'https://shop.example/x', 'https://shop.example/x'],
    ['its own host in the clear', clear, 'http://127.0.0.1:3000/x', 'http://shop.example/app/x'],
    ['a redirect to https', clear, 'https://shop.example/x', 'https://shop.example/app/x'],
    [
      'a visible redirect to https',
      clear,
      'https://shop.example/app/x',
      'https://shop.example/app/x',
    ],
    ['a single page', page, 'http://shop.example/app?key=s3cret', 'https://shop.example/page'],
    ['the scheme of a visitor', internal, 'https://app.internal/x', 'https://shop.example/app/x'],
  ];
  for (const [what, place, sent, seen] of [...cases, ...given]) {
    test(`${what}: ${sent} → ${seen}`, () => {
      assert.equal(rewriteUrl(sent, place), seen);
    });
  }
});

suite('a Set-Cookie of the source', () => {
  const cases: readonly (readonly [string, FetchedUrl, string, string | undefined])[] = [
    ['plain', wildcard, 'a=b', 'a=b; Path=/shop/a'],
    ['plain, in the folder of the rule', siblings, 'a=b', 'a=b; Path=/shop/'],
    ['plain, in the whole site', root, 'a=b', 'a=b'],
    ['plain, passed', trusted, 'a=b', 'a=b'],
    ['plain, of a single page', one, 'a=b', 'a=b; Path=/page'],
    ['plain, at the start of a name', nameStart, 'a=b; Secure', 'a=b; Secure; Path=/shop'],
    ['domain', root, 'a=b; Domain=src.example; Secure', 'a=b; Secure'],
    ['domain of the site', root, 'a=b; Domain=shop.example', 'a=b; Domain=shop.example'],
    [
      'domain above it',
      deep,
      'a=b; DOMAIN=.Shop.Example; Path=/',
      'a=b; DOMAIN=.Shop.Example; Path=/',
    ],
    ['domain above it, passed', deepPassed, 'a=b; Domain=shop.example', 'a=b; Domain=shop.example'],
    ['domain above it, confined', deepPart, 'a=b; Domain=shop.example', 'a=b; Path=/shop/'],
    ['domain beside it', deep, 'a=b; Domain=evilshop.example', 'a=b'],
    ['domain below it', root, 'a=b; Domain=www.shop.example', 'a=b'],
    ['domain that ends like it', root, 'a=b; Domain=op.example', 'a=b'],
    ['domain of all', root, 'a=b; Domain=example', 'a=b'],
    ['domain that is no name', root, 'a=b; Domain=.', 'a=b'],
    ['domain of an address', address, 'a=b; Domain=0.0.1', 'a=b'],
    ['domain that is the address', address, 'a=b; Domain=127.0.0.1', 'a=b; Domain=127.0.0.1'],
    ['domain twice', deep, 'a=b; Domain=x; Domain=shop.example', 'a=b; Domain=shop.example'],
    ['domain in any case', root, 'a=b;DOMAIN=.src.example;HttpOnly', 'a=b;HttpOnly'],
    ['domain without value', root, 'a=b; domain', 'a=b'],
    ['prefix', wildcard, 'a=b; Path=/base/', 'a=b; Path=/shop/'],
    ['below the prefix', wildcard, 'a=b; path=/base/x/', 'a=b; Path=/shop/x/'],
    ['all of the source', wildcard, 'a=b; Path=/; Secure', 'a=b; Path=/shop/; Secure'],
    ['beside the prefix', wildcard, 'a=b; Path=/other', 'a=b; Path=/shop/'],
    ['visible already', stripped, 'a=b; Path=/shop/x', 'a=b; Path=/shop/x'],
    ['visible already, without a slash', stripped, 'a=b; Path=/shop', 'a=b; Path=/shop/'],
    ['of a folder of that name', twice, 'a=b; Path=/shop/', 'a=b; Path=/shop/shop/'],
    ['no path', wildcard, 'a=b; Path', 'a=b; Path=/shop/'],
    ['twice', wildcard, 'a=b; Path=/x; Path=/base/y', 'a=b; Path=/shop/; Path=/shop/y'],
    ['the whole site', root, 'a=b; Path=/', 'a=b; Path=/'],
    ['a single page', one, 'a=b; Path=/app', 'a=b; Path=/page'],
    ['the whole site of the same paths', same, 'a=b; Path=/; Domain=x', 'a=b; Path=/caf%C3%A9/'],
    ['beside the same paths', same, 'a=b; Path=/other', 'a=b; Path=/caf%C3%A9/'],
    ['below the same paths', sameTrusted, 'a=b; Path=/shop/x', 'a=b; Path=/shop/x'],
    ['the whole site of the same page', samePage, 'a=b; Path=/', 'a=b; Path=/login'],
    ['the same paths, passed', sameTrusted, 'a=b; Path=/; Domain=x', 'a=b; Path=/'],
    ['beside the same paths, passed', sameTrusted, 'a=b; Path=/other', 'a=b; Path=/other'],
    ['no path among the same, passed', sameTrusted, 'a=b; Path', 'a=b; Path'],
    ['the same page, passed', pageTrusted, 'a=b; Path=/', 'a=b; Path=/'],
    ['the same page, passed, no path', pageTrusted, 'a=b', 'a=b'],
    ['other paths, passed', trusted, 'a=b; Path=/', 'a=b; Path=/shop/'],
    ['the same path, but all below it', below, 'a=b; Path=/', 'a=b; Path=/api'],
    ['a path that would end the attribute', odd, 'a=b; Path=/', 'a=b; Path=/caf%C3%A9%3B%20x/'],
    ['a host cookie', wildcard, '__Host-a=b; Path=/; Secure', undefined],
    ['a host cookie in any case', same, ' __hOST-a=b; Path=/; Secure', undefined],
    [
      'a host cookie, passed',
      trusted,
      '__Host-a=b; Domain=x; Path=/; Secure',
      '__Host-a=b; Path=/; Secure',
    ],
    ['a host cookie of the whole site', root, '__Host-a=b; Path=/', '__Host-a=b; Path=/'],
    ...[
      ...['waymark_login=x; Path=/', '__Host-waymark_login=x; Path=/; Secure', 'waymark_login =x'],
      ...['=waymark_login=x', ' waymark_login_count=9', 'waymark_signin_abcdefgh=x'],
      ...[
        '__Host-waymark_signin_=x',
        'waymark_draft=x; Max-Age=9',
        `waymark_draft${' '.repeat(9)}=`,
      ],
    ].map((sent) => ["this server's own", root, sent, undefined] as const),
    ['a name like an own one', root, 'waymark_logins=x', 'waymark_logins=x'],
    ['an own name as a value', root, 'a=waymark_login=x', 'a=waymark_login=x'],
    [
      'all else is left alone',
      root,
      'a="x, y=z"; Expires=Wed, 21 Oct 2037 07:28:00 GMT; Max-Age=9; SameSite=Lax; Partitioned',
      'a="x, y=z"; Expires=Wed, 21 Oct 2037 07:28:00 GMT; Max-Age=9; SameSite=Lax; Partitioned',
    ],
  ];
  for (const [what, place, sent, seen] of cases) {
    test(`${what}: ${sent} → ${seen ?? 'none'}`, () => {
      assert.equal(rewriteCookie(sent, place), seen);
    });
  }
});

suite('Link and Refresh of the source', () => {
  const links: readonly (readonly [string, string])[] = [
    [
      '<http://src.example:8080/base/?p=2>; rel="next", </base/a.css>; rel=preload',
      '<https://shop.example/shop/?p=2>; rel="next", </base/a.css>; rel=preload',
    ],
    ['<https://cdn.example/x>; rel=preconnect', '<https://cdn.example/x>; rel=preconnect'],
    [
      '<//src.example:8080/base/a>; title="<//src.example:8080/base/b>"',
      '<https://shop.example/shop/a>; title="<//src.example:8080/base/b>"',
    ],
    ['<https://src.example:8080/base/a>', '<https://src.example:8080/base/a>'],
    ['no link', 'no link'],
    ['<', '<'],
    // A title without an end extends to the end of the value.
    ['</a>; title="<//src.example:8080/b>', '</a>; title="<//src.example:8080/b>'],
    ['</a>; title="\\"<//src.example:8080/b>\\', '</a>; title="\\"<//src.example:8080/b>\\'],
  ];
  for (const [sent, seen] of links) {
    test(`Link: ${sent}`, () => {
      assert.equal(rewriteLinks(sent, wildcard), seen);
    });
  }

  const refreshes: readonly (readonly [string, string])[] = [
    ['0; url=http://src.example:8080/base/x', '0; url=https://shop.example/shop/x'],
    ["5;URL='/base/x'", "5;URL='/shop/x'"],
    ['3, /base/x', '3, /shop/x'],
    ['5', '5'],
    ['0; url=', '0; url='],
    ['0; url=https://pay.example/', '0; url=https://pay.example/'],
  ];
  for (const [sent, seen] of refreshes) {
    test(`Refresh: ${sent}`, () => {
      assert.equal(rewriteRefresh(sent, wildcard), seen);
    });
  }
});
