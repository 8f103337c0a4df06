import assert from 'node:assert/strict';
import { after, suite, test } from 'node:test';
import { operations } from '../../../src/modules.ts';
import { startFollower, untilEqual } from '../nodes/rig.ts';
import { type Answer, type TestSite, startSite } from '../../harness.ts';

const rules = [
  {
    path: 'offer',
    kind: 'resolve',
    enginedata: {
      when: [
        { if: { user: 'anna' }, target: '/for-anna' },
        { if: { role: 'partner' }, target: '/for-partners' },
        { if: { user: '*' }, target: 'key:inner' },
        { if: { query: { t: '*' } }, target: '/with-t' },
      ],
      target: '/for-all',
      forward_query: true,
    },
  },
  {
    path: 'inner',
    kind: 'resolve',
    enginedata: { when: [{ if: { user: 'carl' }, target: '/inner' }], target: '/inner-all' },
  },
  {
    path: 'page',
    kind: 'resolve',
    headers: { 'Referrer-Policy': 'unsafe-url', 'Cache-Control': 'public, max-age=60' },
    enginedata: { when: [{ if: { user: 'anna' }, html: 'Dear Anna' }], html: 'Dear reader' },
  },
  {
    path: '/club/a',
    kind: 'resolve',
    access: 'members',
    enginedata: { target: '/club-home' },
  },
  {
    path: '/club/b',
    kind: 'resolve',
    enginedata: { when: [{ if: { user: 'anna' }, target: 'key:inner' }], target: '/b' },
  },
  { path: 'dead', kind: 'resolve', enginedata: {} },
  {
    path: '/whoami',
    kind: 'content',
    content: 'x',
    contenttype: 'text/plain',
    access: 'members',
  },
];

const settings = {
  server: 'trust_proxy = 127.0.0.0/8',
  ini:
    '[auth]\nuser_header = X-User\nroles_header = X-Roles\n' +
    '[access.members]\npath =\nusers = anna',
  rules,
};

const site = startSite({ after }, settings);

const inAnHour = (): string => new Date(Date.now() + 3_600_000).toISOString();

interface Minted {
  readonly id: string;
  readonly token: string;
  readonly url: string;
  readonly until: string;
}

async function mint(at: TestSite, v: object, more: object = {}): Promise<Minted> {
  const wanted = { k: 'offer', user: 'anna', until: inAnHour(), ...v };
  const { data, error } = await at.call('svc1.breadcrumb.token', wanted, more);
  assert.equal(error, undefined);
  return data;
}

const linkOf = (at: TestSite, k: string, t = ''): string =>
  `${at.url}/svc1/userinterface.link.htm?k=${encodeURIComponent(k)}${t === '' ? '' : `&t=${t}`}`;

function visit(url: string, headers: Readonly<Record<string, string>> = {}, method = 'GET') {
  return fetch(url, { method, headers, redirect: 'manual' });
}

async function listed(at: TestSite, id: string) {
  const { data } = await at.call('svc1.breadcrumb.tokens', {});
  return data.rows.find((row: { readonly id: string }) => row.id === id);
}

suite('the token of a breadcrumb', () => {
  for (const { user, roles = [], k = 'offer', target } of [
    { user: 'anna', target: '/for-anna' },
    { user: 'bert', roles: ['partner'], target: '/for-partners' },
    { user: 'carl', target: '/inner' },
    { user: 'dora', target: '/inner-all' },
    { user: 'anna', k: '/club/a', target: '/club-home' },
  ]) {
    test(`resolves ${k} for ${user} as for that person signed in`, async () => {
      const at = await site;
      const { url, token } = await mint(at, { k, user, roles });
      assert.ok(url.startsWith(`${at.url}/svc1/userinterface.link.htm?k=`));
      assert.match(token, /^wmb_[\w-]{43}$/);
      const signedIn = await visit(linkOf(at, k), { 'x-user': user, 'x-roles': roles.join(',') });
      const byToken = await visit(url);
      const socket = await at.socket();
      const answers = [
        await at.call('svc1.userinterface.get_resolve', { k, t: token }, { apikey: undefined }),
        await socket.call('svc1.userinterface.get_resolve', { k, t: token }),
        await socket.call('svc1.userinterface.link.htm', { k, t: token }),
      ];
      assert.equal(byToken.status, signedIn.status);
      assert.equal(byToken.headers.get('location'), target);
      assert.equal(signedIn.headers.get('location'), target);
      assert.equal(byToken.headers.get('vary'), signedIn.headers.get('vary'));
      for (const { data, error } of answers) {
        assert.equal(error, undefined);
        assert.equal(data.target, target);
      }
      // The visitor's own sign-in does not count beside it.
      const other = await visit(url, { 'x-user': 'zoe' });
      assert.equal(other.headers.get('location'), target);
    });
  }

  test('is for no cache, no referrer and no target, and sets no session', async () => {
    const at = await site;
    const { url } = await mint(at, { k: 'page' });
    const page = await visit(url);
    assert.equal(await page.text(), 'Dear Anna');
    assert.equal(page.headers.get('referrer-policy'), 'no-referrer');
    assert.equal(page.headers.get('cache-control'), 'private, no-store');
    assert.equal(page.headers.get('set-cookie'), null);
    const { url: link, token } = await mint(at, {});
    const answer = await visit(`${link}&from=mail&t=${token}`);
    assert.equal(answer.headers.get('location'), '/for-anna?from=mail');
    const asked = `${at.url}/svc1/userinterface/get_resolve?_v.k=offer&_v.t=${token}`;
    const data = await visit(asked);
    assert.equal(data.headers.get('referrer-policy'), 'no-referrer');
    assert.equal(data.headers.get('cache-control'), 'private, no-store');
    const { url: dead } = await mint(at, { k: 'dead' });
    const failed = await visit(dead);
    assert.equal(failed.status, 404);
    assert.equal(failed.headers.get('referrer-policy'), 'no-referrer');
  });

  test('is no other value of t, which the breadcrumb and its target get', async () => {
    const at = await site;
    const answer = await visit(linkOf(at, 'offer', 'x'));
    assert.equal(answer.headers.get('location'), '/with-t?t=x');
  });

  test('is for its key and origin only, and for no page', async () => {
    const at = await site;
    const { token } = await mint(at, {});
    const wrong: readonly Answer[] = await Promise.all([
      at.call('svc1.userinterface.get_resolve', { k: 'page', t: token }),
      at.call('svc1.userinterface.get_resolve', { k: 'inner', t: token }),
      at.call('svc1.userinterface.get_resolve', { k: 'offer', t: `${token}x` }),
      at.call('svc1.userinterface.get_resolve', {
        ...{ k: 'offer', t: token },
        origin: 'http://other.example',
      }),
    ]);
    for (const { status, error } of wrong) {
      assert.equal(status, 404);
      assert.equal(error?.field, 't');
    }
    const page = await visit(`${at.url}/whoami?t=${token}`);
    assert.equal(page.status, 401);
    const signedIn = await visit(`${at.url}/whoami`, { 'x-user': 'anna' });
    assert.equal(signedIn.status, 200);
    for (const more of [{ as_of: '1' }, { user: 'bert' }, { country: 'CH' }]) {
      const mixed = { k: 'offer', t: token, ...more };
      const { error } = await at.call('svc1.userinterface.get_resolve', mixed);
      assert.deepEqual([error?.code, error?.field], ['invalid', Object.keys(more)[0]]);
    }
  });

  test('ends at its end, or when it is revoked', async (t) => {
    const at = await startSite(t, settings);
    const nowMs = Date.now();
    t.mock.timers.enable({ apis: ['Date'], now: nowMs });
    const until = new Date(nowMs + 60_000).toISOString();
    const [ending, revoked] = [await mint(at, { until }), await mint(at, {})];
    assert.equal((await visit(ending.url)).status, 302);
    const done = await at.call('svc1.breadcrumb.revoke_token', { id: revoked.id });
    assert.deepEqual(done.data, { id: revoked.id, revoked: true });
    assert.equal((await visit(revoked.url)).status, 404);
    const again = await at.call('svc1.breadcrumb.revoke_token', { id: revoked.id });
    assert.equal(again.error?.code, 'not_found');
    t.mock.timers.setTime(nowMs + 59_999);
    assert.equal((await visit(ending.url)).status, 302);
    assert.equal((await listed(at, ending.id)).state, 'ending');
    t.mock.timers.setTime(nowMs + 60_000);
    const late = await visit(ending.url);
    assert.equal(late.status, 404);
    assert.match(await late.text(), new RegExp(`ended at ${until}`));
    const rows = [await listed(at, ending.id), await listed(at, revoked.id)];
    assert.deepEqual(
      rows.map(({ state, uses }) => [state, uses]),
      [
        ['ended', 2],
        ['revoked', 0],
      ],
    );
    // Keys are told apart from tokens.
    const status = await at.call('svc1.server.status', {});
    assert.deepEqual(status.data.keys, { ending: 0, ended: 0 });
  });

  test('that is wrong counts as a wrong key', async (t) => {
    const at = await startSite(t, settings);
    const { url, token } = await mint(at, {});
    const statuses = new Set<number>();
    for (let tries = 0; tries < 21; tries += 1) {
      statuses.add((await visit(linkOf(at, 'page', token))).status);
    }
    assert.deepEqual([...statuses], [404, 429]);
    const wrongKey = await visit(`${at.url}/svc1/key/list`, { apikey: 'wmk_x' });
    assert.equal(wrongKey.status, 429);
    assert.equal((await visit(url)).status, 302);
  });

  test('is no API key, for any operation', async (t) => {
    const at = await startSite(t, settings);
    const { id, token } = await mint(at, {});
    for (const { name } of operations) {
      const { status = 0 } = await at.call(name, {}, { apikey: token });
      assert.ok(status === 401 || status === 429, `${name}: ${status}`);
    }
    const bearer = { authorization: `Bearer ${token}` };
    const refused = await visit(`${at.url}/svc1/key/list`, bearer);
    assert.ok(refused.status === 401 || refused.status === 429);
    const socket = await at.socket();
    const signed = await socket.call('svc1.session.authenticate', { apikey: token });
    assert.match(signed.error?.code ?? '', /^(?:unauthenticated|rate_limited)$/);
    const keys = await at.call('svc1.key.list', {});
    assert.deepEqual(
      keys.data.rows.map((row: { readonly name: string }) => row.name),
      ['admin'],
    );
    for (const name of ['svc1.key.read', 'svc1.key.revoke']) {
      assert.equal((await at.call(name, { id })).error?.code, 'not_found');
    }
    const edited = await at.call('svc1.key.edit', { id, until: 'never' });
    assert.equal(edited.error?.code, 'not_found');
    const ended = await at.call('svc1.session.end', { id });
    assert.equal(ended.error?.code, 'not_found');
  });

  test('is in no log, live log or history', async (t) => {
    const at = await startSite(t, settings);
    const watcher = await at.socket(at.adminKey);
    const heard: string[] = [];
    watcher.websocket.on('message', (data: Buffer) => heard.push(data.toString()));
    await watcher.call('svc1.log.access', {});
    const { url, token } = await mint(at, {}, { vk: 'mail' });
    await visit(url);
    await visit(url.replace('wmb_', '%77m%62%5f'));
    await visit(at.url, { referer: url });
    while (heard.join('').split('wmb_…').length < 4) {
      await new Promise((resolve) => watcher.websocket.once('message', resolve));
    }
    const changes = await at.call('svc1.change.list', {});
    const again = await at.call(
      'svc1.breadcrumb.token',
      { k: 'offer', user: 'anna', until: inAnHour() },
      { vk: 'mail' },
    );
    assert.equal(again.error?.code, 'conflict');
    const tokens = await at.call('svc1.breadcrumb.tokens', {});
    const secret = token.slice('wmb_'.length);
    for (const text of [
      ...[at.logged(), heard.join('')],
      ...[changes, tokens].map((one) => JSON.stringify(one)),
    ]) {
      assert.ok(!text.includes(secret));
    }
    assert.match(at.logged(), /t=wmb_…/);
    assert.ok(!JSON.stringify([changes, tokens]).includes('hash'));
  });
});

suite('breadcrumb.token', () => {
  test('shows the token once: a repeat with its vk has the answer without it', async () => {
    const at = await site;
    const v = { k: 'offer', user: 'eva', until: inAnHour() };
    const first = await at.call('svc1.breadcrumb.token', v, { vk: 'once' });
    const second = await at.call('svc1.breadcrumb.token', v, { vk: 'once' });
    assert.equal(second.replayed, true);
    const { token, url, ...shown } = first.data;
    assert.ok(url.endsWith(token));
    assert.deepEqual(second.data, shown);
  });

  test('refuses what has no breadcrumb, no end, or an end that has passed', async () => {
    const at = await site;
    for (const [v, code, field] of [
      [{ k: 'none' }, 'not_found', 'k'],
      [{ k: '/whoami' }, 'not_found', 'k'],
      [{ until: 'never' }, 'invalid', 'until'],
      [{ until: 'soon' }, 'invalid', 'until'],
      [{ until: '2020-01-01T00:00Z' }, 'invalid', 'until'],
      [{ origin: '*' }, 'invalid', 'origin'],
      [{ user: '' }, 'invalid', 'user'],
    ] as const) {
      const wanted = { k: 'offer', user: 'anna', until: inAnHour(), ...v };
      const { error } = await at.call('svc1.breadcrumb.token', wanted);
      assert.equal(error?.code, code, JSON.stringify(v));
      assert.equal(error.field?.replace(/^v\./, ''), field);
    }
  });

  test('needs design and read, lives no longer than its key, and is in no draft', async () => {
    const at = await site;
    const keyOf = async (name: string, scopes: readonly string[], more: object = {}) =>
      (await at.call('svc1.key.insert', { name, scopes, ...more })).data.key as string;
    const v = { k: 'offer', user: 'anna', until: inAnHour() };
    for (const scopes of [['read'], ['read', 'draft'], ['design'], ['render']]) {
      const apikey = await keyOf(scopes.join(' '), scopes);
      const { error } = await at.call('svc1.breadcrumb.token', v, { apikey });
      assert.equal(error?.code, 'forbidden', scopes.join(' '));
    }
    const until = new Date(Date.now() + 60_000).toISOString();
    const apikey = await keyOf('ending', ['read', 'design'], { until });
    const late = await at.call('svc1.breadcrumb.token', v, { apikey });
    assert.deepEqual([late.error?.code, late.error?.field], ['forbidden', 'until']);
    await mint(at, { until }, { apikey });
    await at.call('svc1.draft.insert', { name: 'next' });
    const drafted = await at.call('svc1.breadcrumb.token', v, { draft: 'next' });
    assert.equal(drafted.error?.code, 'invalid');
  });

  test('keeps to the bounds of its key, as its tokens do', async () => {
    const at = await site;
    const bound = { name: 'club', scopes: ['read', 'design'], paths: ['/club/'] };
    const apikey = (await at.call('svc1.key.insert', bound)).data.key as string;
    const outside = await at.call(
      'svc1.breadcrumb.token',
      { k: 'offer', user: 'anna', until: inAnHour() },
      { apikey },
    );
    assert.equal(outside.error?.code, 'forbidden');
    const inside = await mint(at, { k: '/club/a' }, { apikey });
    assert.equal((await visit(inside.url)).headers.get('location'), '/club-home');
    // It leads over a key that the maker of the token does not see.
    const led = await mint(at, { k: '/club/b' }, { apikey });
    assert.equal((await visit(led.url)).status, 404);
    const free = await mint(at, { k: '/club/b' });
    assert.equal((await visit(free.url)).headers.get('location'), '/inner-all');
    const other = await mint(at, {});
    const { data } = await at.call('svc1.breadcrumb.tokens', {}, { apikey });
    assert.ok(data.rows.every(({ k }: { readonly k: string }) => k.startsWith('/club/')));
    const hidden = await at.call('svc1.breadcrumb.revoke_token', { id: other.id }, { apikey });
    assert.equal(hidden.error?.code, 'not_found');
    const own = await at.call('svc1.breadcrumb.revoke_token', { id: free.id }, { apikey });
    assert.equal(own.error, undefined);
  });

  test('lists tokens by key, user and origin, with their uses', async () => {
    const at = await site;
    const { id, url } = await mint(at, { k: 'page', user: 'frida', roles: ['a', 'b'] });
    await visit(url);
    await visit(url, {}, 'HEAD');
    await visit(url, { 'sec-purpose': 'prefetch' });
    const socket = await at.socket();
    const t = new URL(url).searchParams.get('t');
    await socket.call('svc1.userinterface.get_resolve', { k: 'page', t });
    const { data } = await socket.call('svc1.breadcrumb.tokens', { user: 'frida' });
    assert.equal(data, undefined);
    const byUser = await at.call('svc1.breadcrumb.tokens', { user: 'frida', origin: at.url });
    assert.equal(byUser.data.rows.length, 1);
    const { created, until, last_used: lastUsed, ...row } = byUser.data.rows[0];
    assert.ok(created < until && lastUsed >= created);
    assert.deepEqual(row, {
      ...{ id, k: 'page', origin: at.url, user: 'frida', roles: ['a', 'b'] },
      ...{ state: 'valid', uses: 2 },
    });
    for (const v of [{ k: 'offer', user: 'frida' }, { origin: 'http://x.example' }]) {
      assert.deepEqual((await at.call('svc1.breadcrumb.tokens', v)).data.rows, []);
    }
  });
});

test('a replica resolves the tokens of its centre, and makes and revokes them there', async (t) => {
  const centre = await startSite(t, settings);
  const replica = await startFollower(t, centre, { name: 'copy-1' });
  const { id, url } = await mint(centre, { origin: replica.url });
  await untilEqual(centre, replica);
  assert.ok(url.startsWith(replica.url));
  assert.equal((await visit(url)).headers.get('location'), '/for-anna');
  const as = { apikey: centre.adminKey };
  const made = await mint(replica, { user: 'dora' }, as);
  await untilEqual(centre, replica);
  assert.equal((await visit(made.url)).headers.get('location'), '/inner-all');
  assert.equal((await replica.call('svc1.breadcrumb.revoke_token', { id }, as)).error, undefined);
  await untilEqual(centre, replica);
  assert.equal((await visit(url)).status, 404);
  // Each machine counts its own.
  assert.equal((await listed(centre, id)).uses, 0);
});
