import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { suite, test, type TestContext } from 'node:test';
import { WebSocket } from 'ws';
import { startSite, type TestSite } from '../../harness.ts';
import { mmdb } from '../../modules/visitors/mmdb.ts';
import { newIssuer, unsigned } from '../../modules/visitors/issuer.ts';

const crumb = (when: readonly object[]) => ({
  path: '/crumb',
  kind: 'resolve',
  enginedata: { target: '/all', when },
});
const forAnn = crumb([
  { if: { user: 'ann', role: 'editor' }, target: '/editor' },
  { if: { user: 'ann' }, target: '/ann' },
  { if: { user: '*' }, target: '/user' },
]);
const forSwiss = crumb([{ if: { country: ['CH', 'LI'] }, target: '/ch' }]);
const generic = { path: '/generic', kind: 'content', engine: 'html' };
const proxied = 'trust_proxy = 127.0.0.0/8, ::1/128';

type Headers = Readonly<Record<string, string>>;

async function landing(site: TestSite, headers: Headers = {}): Promise<string | null> {
  const reply = await fetch(`${site.url}/crumb`, { redirect: 'manual', headers });
  return reply.headers.get('location');
}

async function rendered(site: TestSite, headers: Headers = {}) {
  const v = { origin: site.url, path: '/generic' };
  return (await site.call('svc1.userinterface.get_render', v, { headers })).data.user as unknown;
}

suite('the user in the header of a proxy', () => {
  const ini = '[auth]\nuser_header = X-User\nroles_header = X-Roles\n';
  test('is accepted from a trusted proxy, with the roles', async (t) => {
    const site = await startSite(t, { server: proxied, ini, rules: [forAnn, generic] });
    const cases: readonly (readonly [Headers, string, object | null])[] = [
      [{}, '/all', null],
      [{ 'x-user': 'ann' }, '/ann', { name: 'ann', roles: [] }],
      [
        { 'x-user': 'ann', 'x-roles': 'reader, editor,' },
        '/editor',
        { name: 'ann', roles: ['reader', 'editor'] },
      ],
      [{ 'x-user': 'eve', 'x-roles': 'editor' }, '/user', { name: 'eve', roles: ['editor'] }],
      [{ 'x-roles': 'editor' }, '/all', null],
      [{ 'x-user': '' }, '/all', null],
      [{ 'x-user': 'a'.repeat(300) }, '/all', null],
    ];
    for (const [headers, location, user] of cases) {
      assert.equal(await landing(site, headers), location);
      assert.deepEqual(await rendered(site, headers), user);
    }
  });

  test('is ignored from any other client', async (t) => {
    const site = await startSite(t, { ini, rules: [forAnn, generic] });
    const forged = { 'x-user': 'ann', 'x-roles': 'editor', x_user: 'ann' };
    assert.equal(await landing(site, forged), '/all');
    assert.equal(await rendered(site, forged), null);
  });
});

suite('the country of a visitor', () => {
  const files = {
    'geo.mmdb': mmdb({
      '192.0.2.0/24': { country: { iso_code: 'CH' } },
      '198.51.100.0/24': { country: { iso_code: 'DE' } },
    }),
  };
  const ini = '[geo]\ndatabase = geo.mmdb\ncountry_header = X-Country\n';
  const from = (address: string, country?: string) => ({
    'x-forwarded-for': address,
    ...(country !== undefined && { 'x-country': country }),
  });

  test('comes from a trusted proxy, or else from the database', async (t) => {
    const site = await startSite(t, { server: proxied, ini, files, rules: [forSwiss] });
    const cases: readonly (readonly [Headers, string])[] = [
      [from('192.0.2.7'), '/ch'],
      [from('198.51.100.7'), '/all'],
      [from('203.0.113.7'), '/all'],
      [from('198.51.100.7', 'li'), '/ch'],
      [from('192.0.2.7', 'DE'), '/all'],
      [from('192.0.2.7', 'XX'), '/ch'],
      [from('192.0.2.7', 'nowhere'), '/ch'],
    ];
    for (const [headers, location] of cases) {
      assert.equal(await landing(site, headers), location, JSON.stringify(headers));
    }
  });

  test('never comes from a header of the visitor', async (t) => {
    const site = await startSite(t, { ini, files, rules: [forSwiss] });
    assert.equal(await landing(site, from('192.0.2.7', 'CH')), '/all');
    const forwarded = { forwarded: 'for=192.0.2.7', 'x-real-ip': '192.0.2.7' };
    assert.equal(await landing(site, forwarded), '/all');
  });

  test('of a preview is that of the given address', async (t) => {
    const site = await startSite(t, { ini, files, rules: [forSwiss] });
    const come = async (preview: object) => {
      const v = { k: '/crumb', ...preview };
      const { data } = await site.call('svc1.userinterface.get_resolve', v);
      const explained = await site.call('svc1.userinterface.explain', v);
      assert.deepEqual(explained.data.notes, [`It leads to ${data.target}.`]);
      return data.target as string;
    };
    assert.equal(await come({ ip: '192.0.2.7' }), '/ch');
    assert.equal(await come({ ip: '192.0.2.7', country: 'DE' }), '/all');
    assert.equal(await come({ country: 'LI' }), '/ch');
  });
});

suite('the user of a token', async () => {
  const issuer = await newIssuer('one');
  const keys = JSON.stringify({ keys: [issuer.jwk] });
  const inFile = {
    ini: '[auth]\njwt_jwks = keys.json\njwt_issuer = https://id.example/\njwt_audience = shop\n',
    files: { 'keys.json': keys },
    rules: [forAnn, generic],
  };
  const claims = { iss: 'https://id.example/', aud: 'shop' };

  test('is read from a bearer token or a cookie', async (t) => {
    const site = await startSite(t, inFile);
    const token = await issuer.sign({ claims: { ...claims, roles: ['editor'] } });
    const plain = await issuer.sign({ claims: { ...claims, sub: 'eve' } });
    const cases: readonly (readonly [Headers, string])[] = [
      [{ authorization: `Bearer ${token}` }, '/editor'],
      [{ authorization: `bearer  ${token}` }, '/editor'],
      [{ cookie: `a=b; jwt=${token}; c=d` }, '/editor'],
      [{ cookie: `jwt="${token}"` }, '/editor'],
      [{ authorization: `Bearer ${plain}`, cookie: `jwt=${token}` }, '/user'],
      [{ authorization: 'Basic YTpi', cookie: `jwt=${token}` }, '/editor'],
      [{ authorization: token }, '/all'],
      [{ cookie: `other=${token}` }, '/all'],
    ];
    for (const [headers, location] of cases) {
      assert.equal(await landing(site, headers), location, JSON.stringify(headers));
    }
    assert.deepEqual(await rendered(site, { cookie: `jwt=${plain}` }), { name: 'eve', roles: [] });
    assert.ok(!site.logged().includes(token));
  });

  test('is empty for an invalid token; the page is served all the same', async (t) => {
    const site = await startSite(t, inFile);
    const nowMs = Date.now();
    const forged = [
      await issuer.sign({ claims: { ...claims, exp: Math.floor(nowMs / 1_000) - 60 } }),
      await issuer.sign({ claims: { ...claims, iss: 'https://evil.example/' } }),
      await issuer.sign({ claims: { ...claims, aud: 'bank' } }),
      await (await newIssuer('one')).sign({ claims }),
      unsigned({ alg: 'none' }, { ...claims, sub: 'ann', exp: 9e9 }),
      'x'.repeat(20_000),
      'x.y.z',
    ];
    for (const token of forged) {
      assert.equal(await landing(site, { authorization: `Bearer ${token}` }), '/all');
      assert.equal(await rendered(site, { cookie: `jwt=${token}` }), null);
    }
  });

  test('does not override the user of a trusted proxy', async (t) => {
    const ini = `${inFile.ini}user_header = X-User\n`;
    const site = await startSite(t, { ...inFile, server: proxied, ini });
    const cookie = `jwt=${await issuer.sign({ claims })}`;
    assert.equal(await landing(site, { cookie, 'x-user': 'eve' }), '/user');
    assert.equal(await landing(site, { cookie }), '/ann');
  });

  test('applies to a websocket of the own site, not to one of another site', async (t) => {
    const site = await startSite(t, inFile);
    const cookie = `jwt=${await issuer.sign({ claims })}`;
    assert.equal(await resolvedOver(t, site, { cookie, origin: site.url }), '/ann');
    assert.equal(await resolvedOver(t, site, { cookie, origin: 'https://evil.example' }), '/all');
    assert.equal(await resolvedOver(t, site, { cookie }), '/ann');
  });

  test('is verified with keys from a URL, at the addresses that the ini file allows', async (t) => {
    let asked = 0;
    const source = createServer((_, response) => {
      asked += 1;
      response.end(keys);
    }).listen(0, '127.0.0.1');
    await once(source, 'listening');
    t.after(() => source.close());
    const { port } = source.address() as AddressInfo;
    const ini = `[auth]\njwt_jwks = http://127.0.0.1:${port}/keys\n`;
    const headers = { authorization: `Bearer ${await issuer.sign()}` };
    const open = await startSite(t, {
      ini: `${ini}allow_private = 127.0.0.0/8\n`,
      rules: [forAnn],
    });
    assert.equal(await landing(open), '/all');
    assert.equal(asked, 0, 'nobody has a token yet');
    assert.equal(await landing(open, headers), '/ann');
    assert.equal(await landing(open, headers), '/ann');
    assert.equal(asked, 1);
    const closed = await startSite(t, { ini, rules: [forAnn] });
    assert.equal(await landing(closed, headers), '/all');
    assert.equal(asked, 1);
    assert.match(closed.logged(), /Cannot fetch the keys of \[auth\] jwt_jwks\./);
  });

  test('delays only the visitors whose page depends on it', async (t) => {
    const source = createServer(() => undefined).listen(0, '127.0.0.1');
    await once(source, 'listening');
    t.after(() => {
      source.closeAllConnections();
      source.close();
    });
    const { port } = source.address() as AddressInfo;
    const site = await startSite(t, {
      ini: `[auth]\njwt_jwks = http://127.0.0.1:${port}/\nallow_private = 127.0.0.0/8\n`,
      rules: [forAnn, { path: '/page', kind: 'content', content: 'x' }],
    });
    const headers = { authorization: `Bearer ${await issuer.sign()}` };
    const slow = landing(site, headers);
    await once(source, 'request');
    assert.equal(await (await fetch(`${site.url}/page`, { headers })).text(), 'x');
    assert.equal(await landing(site), '/all');
    source.closeAllConnections();
    assert.equal(await slow, '/all');
  });
});

/** The destination of the breadcrumb over a websocket that was opened with these headers. */
async function resolvedOver(t: TestContext, site: TestSite, headers: Headers): Promise<string> {
  const websocket = new WebSocket(`${site.url.replace('http', 'ws')}/svc1/ws`, { headers });
  t.after(() => {
    websocket.terminate();
  });
  await once(websocket, 'open');
  websocket.send('{"a":"svc1.userinterface.get_resolve","v":{"k":"/crumb"}}');
  const [message] = (await once(websocket, 'message')) as [Buffer];
  const { data } = JSON.parse(message.toString()) as { data: { target: string } };
  return data.target;
}
