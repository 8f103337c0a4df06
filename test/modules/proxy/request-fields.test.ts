import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { suite, test } from 'node:test';
import type { JsonObject } from '../../../src/core/values/json/json.ts';
import {
  forwardedField,
  isLoop,
  requestFields,
  viaName,
} from '../../../src/modules/proxy/request-fields.ts';
import { fetchPlan } from '../../../src/modules/proxy/fetch-plan.ts';
import { fetchRule, visit } from './fetch-rig.ts';
import { unknownAddress, type ClientAddress } from '../../../src/core/values/network/peer.ts';

type Sent = Readonly<Record<string, string>>;

/** The fields a source gets for a visitor's, without the trail that every request leaves. */
function sentFor(
  fields: Sent,
  enginedata: JsonObject = {},
  options: Parameters<typeof visit>[0] = {},
): Sent {
  const plan = fetchPlan(fetchRule({ source: 'http://src.example/*', ...enginedata }));
  const flat = requestFields(plan, visit({ ...options, fields }), options.body !== undefined, {
    ofLog: 'waymark',
    ofNode: 'waymark',
  });
  return Object.fromEntries(
    Array.from({ length: flat.length / 2 }, (_, at) => [flat[2 * at], flat[2 * at + 1]]),
  ) as Sent;
}

const trail: Sent = {
  forwarded: 'for=192.0.2.7;host="visible.example";proto=http',
  'x-forwarded-for': '192.0.2.7',
  'x-forwarded-host': 'visible.example',
  'x-forwarded-proto': 'http',
  via: '1.1 waymark-r1',
};

suite('the fields of a request that the source gets', () => {
  const passed: Sent = {
    accept: 'text/html',
    'accept-encoding': 'br;q=1, gzip;q=0.8',
    'accept-language': 'de',
    range: 'bytes=0-9',
    'if-range': '"x"',
    'if-none-match': '"x"',
    'if-match': '"y"',
    'if-modified-since': 'Wed, 21 Oct 2015 07:28:00 GMT',
    'content-type': 'text/plain',
    'user-agent': 'test',
    referer: 'http://visible.example/',
    'x-custom': 'caf\xe9',
  };
  test('are forwarded', () => {
    assert.deepEqual(sentFor(passed), { ...passed, ...trail });
  });

  const dropped: (readonly [string, Sent])[] = [
    ['Connection', { connection: 'keep-alive' }],
    ['what Connection names', { connection: 'close, X-Hop , te', 'x-hop': '1', te: 'trailers' }],
    ['Keep-Alive', { 'keep-alive': 'timeout=5' }],
    ['Proxy-Authorization', { 'proxy-authorization': 'Basic eDp5' }],
    ['Proxy-Connection', { 'proxy-connection': 'keep-alive' }],
    ['Proxy-Anything', { 'proxy-anything': '1' }],
    ['Proxy', { proxy: 'http://evil.example/' }],
    ['TE', { te: 'trailers' }],
    ['Trailer', { trailer: 'X' }],
    ['Transfer-Encoding', { 'transfer-encoding': 'chunked' }],
    ['Upgrade', { upgrade: 'websocket', connection: 'upgrade' }],
    ['Host', { host: 'visible.example' }],
    ['Expect', { expect: '100-continue' }],
    ['apikey', { apikey: 'wk_secret' }],
    ['Cookie', { cookie: 'session=1' }],
    ['Authorization', { authorization: 'Bearer x' }],
    ['the length of no content', { 'content-length': '5' }],
    ['claims about the way', { forwarded: 'for=1.1.1.1', 'x-forwarded-for': '1.1.1.1' }],
    ['more claims', { 'x-forwarded-port': '1', 'x-real-ip': '1.1.1.1', 'x-forwarded-user': 'a' }],
  ];
  for (const name of ['x_forwarded_for', 'x-forwarded_host', 'x.forwarded.proto', 'x_real_ip']) {
    dropped.push([`the way under the name ${name}`, { [name]: '1.1.1.1' }]);
  }
  for (const name of ['transfer_encoding', 'content_length', 'proxy_authorization', 'x_user']) {
    dropped.push([`${name}, which CGI takes for another`, { [name]: '1' }]);
  }
  for (const name of ['x-http-method-override', 'x-original-url', 'x_original_url']) {
    dropped.push([`${name}, which makes another request of it`, { [name]: '/admin' }]);
  }
  for (const [what, fields] of dropped) {
    test(`do not include ${what}`, () => {
      assert.deepEqual(sentFor({ ...fields, accept: '*/*' }), { accept: '*/*', ...trail });
    });
  }

  test('include Cookie and Authorization if the rule passes them', () => {
    const private_ = { cookie: 'session=1', authorization: 'Bearer x' };
    assert.deepEqual(sentFor(private_, { pass: ['Cookie'] }), { cookie: 'session=1', ...trail });
    assert.deepEqual(sentFor(private_, { pass: ['COOKIE', 'Authorization'] }), {
      ...private_,
      ...trail,
    });
  });

  test('include names with other characters only if the rule passes them', () => {
    const fields = { api_key: 'k', 'x.a': '1', 'x-original-url': '/x', x_real_ip: '1.1.1.1' };
    assert.deepEqual(sentFor(fields, { pass: ['API_Key', 'x.a', 'X-Original-URL', 'x_real_ip'] }), {
      ...{ api_key: 'k', 'x.a': '1', 'x-original-url': '/x' },
      ...trail,
    });
  });

  test('never include a key of this server or hop-by-hop fields, even if the rule passes them', () => {
    const fields = { apikey: 'wmk_secret', 'proxy-authorization': 'x', te: 'y', host: 'z' };
    assert.deepEqual(
      sentFor(fields, { pass: ['apikey', 'APIKEY', ...Object.keys(fields)] }),
      trail,
    );
  });

  test('include Content-Length if there is content', () => {
    const options = { method: 'POST', body: Readable.from(['hello']) };
    assert.deepEqual(sentFor({ 'content-length': '5' }, {}, options), {
      ...trail,
      'content-length': '5',
    });
  });

  test('include Content-Length even if Connection names it', () => {
    const options = { method: 'POST', body: Readable.from(['hello']) };
    const fields = { connection: 'content-length', 'content-length': '5' };
    assert.deepEqual(sentFor(fields, {}, options), { ...trail, 'content-length': '5' });
  });
});

suite("the rule's own fields", () => {
  test('are added, and override the client', () => {
    const headers = { Authorization: 'Bearer rule', 'X-Key': 'k', Accept: 'text/css' };
    assert.deepEqual(sentFor({ accept: '*/*', authorization: 'x', 'x-key': 'y' }, { headers }), {
      accept: 'text/css',
      authorization: 'Bearer rule',
      'x-key': 'k',
      ...trail,
    });
  });

  test('displace client fields with the same CGI name', () => {
    const headers = { 'X-Role': 'reader', X_Shop: 'a' };
    const fields = { x_role: 'admin', 'x.role': 'admin', 'x-shop': 'b' };
    assert.deepEqual(sentFor(fields, { headers, pass: Object.keys(fields) }), {
      ...{ 'x-role': 'reader', x_shop: 'a' },
      ...trail,
    });
  });

  test('may set X-Forwarded-* and Host', () => {
    const headers = { 'X-Forwarded-For': '10.9.8.7', apikey: 'of-the-source', Host: 'v.example' };
    assert.deepEqual(sentFor({ apikey: 'of-the-client' }, { headers }), {
      ...trail,
      'x-forwarded-for': '10.9.8.7',
      apikey: 'of-the-source',
      host: 'v.example',
    });
  });

  test('cannot set framing fields or Via', () => {
    const headers = {
      'Content-Length': '9',
      'Transfer-Encoding': 'chunked',
      Connection: 'close',
      'Keep-Alive': 'x',
      Upgrade: 'h2c',
      TE: 'x',
      Expect: '100-continue',
      Via: '1.1 nobody',
    };
    assert.deepEqual(sentFor({}, { headers }), trail);
  });

  test('are ignored if they are not texts', () => {
    assert.deepEqual(sentFor({}, { headers: { a: 1, b: null, c: ['x'] } }), trail);
    assert.deepEqual(sentFor({}, { headers: 'x', pass: 'cookie' }), trail);
  });
});

suite('Forwarded, X-Forwarded-* and Via', () => {
  const addresses: readonly (readonly [ClientAddress, string, string | undefined])[] = [
    ['192.0.2.7', 'for=192.0.2.7', '192.0.2.7'],
    ['::ffff:192.0.2.7', 'for=192.0.2.7', '192.0.2.7'],
    ['2001:db8::1', 'for="[2001:db8::1]"', '2001:db8::1'],
    ['fe80::1%eth0', 'for="[fe80::1]"', 'fe80::1'],
    [unknownAddress, 'for=unknown', undefined],
  ];
  for (const [address, forwarded, list] of addresses) {
    test(`name the client ${JSON.stringify(address)}`, () => {
      const sent = sentFor({}, {}, { address, origin: 'https://v.example:8443' });
      assert.equal(sent.forwarded, `${forwarded};host="v.example:8443";proto=https`);
      assert.equal(sent['x-forwarded-for'], list);
      assert.equal(sent['x-forwarded-host'], 'v.example:8443');
      assert.equal(sent['x-forwarded-proto'], 'https');
    });
  }

  test('Via continues the list of earlier hops', () => {
    const { via } = sentFor({ via: '1.0 fred, 1.1 waymark-r2 (two)' });
    assert.equal(via, '1.0 fred, 1.1 waymark-r2 (two), 1.1 waymark-r1');
  });

  const loops: readonly (readonly [string | undefined, boolean])[] = [
    [undefined, false],
    ['', false],
    ['1.1 waymark-r1', true],
    ['1.1 fred, 1.1 waymark-r1', true],
    ['1.1 waymark-r1,1.1 fred', true],
    ['1.0\twaymark-r1 (comment)', true],
    ['1.1 waymark-r2', false],
    ['1.1 waymark-r11', false],
    ['1.1 waymark', false],
  ];
  for (const [via, loop] of loops) {
    test(`${via ?? 'no Via'} is ${loop ? 'a loop' : 'another hop'}`, () => {
      assert.equal(isLoop(via, viaName({ ofLog: 'waymark', ofNode: 'waymark' }, 'r1')), loop);
    });
  }
});

test('a field that a request lacks costs no look at all that Connection names', () => {
  let looks = 0;
  const fields = {
    'x-own': 'a',
    get connection(): string {
      looks += 1;
      return 'x-own';
    },
  };
  const plan = fetchPlan(fetchRule({ source: 'http://src.example/*' }));
  const request = { ...visit(), fields };
  const via = { ofLog: 'waymark', ofNode: 'waymark' };
  const names = ['cookie', 'authorization', 'x-api-key', 'x-other'];
  for (const name of names) assert.equal(forwardedField(plan, request, via, name), undefined);
  assert.equal(looks, 0);
  assert.equal(forwardedField(plan, request, via, 'x-own'), undefined);
  assert.equal(looks, 1);
});
