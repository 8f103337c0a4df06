import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, suite, test } from 'node:test';
import { startSite, type Answer, type TestSite } from '../../../harness.ts';
import { bounds, inside, secret, startWorld } from './world.ts';

const { origin } = inside;
const rule = 'svc1.userinterface';

const started = startWorld({ after }).then(async (world) => {
  const apikey = await world.key(['render', 'read', 'design']);
  const call: TestSite['call'] = (name, v, more) => world.site.call(name, v, { apikey, ...more });
  return { ...world, apikey, call };
});

/** Adds a page rule inside. */
async function insertOurs(path: string): Promise<string> {
  const { call } = await started;
  const { data } = await call(`${rule}.insert`, { origin, path, content: 'ours' });
  return data.id as string;
}

/** A failure without what differs from request to request. */
function failureOf({ status, error }: Answer, id: string): object {
  const { code, message, field } = error ?? {};
  return { status, code, field, message: message?.replace(id, '<id>') };
}

suite('page rules for a bound key', () => {
  test('a rule outside gets the failure of one that does not exist', async () => {
    const { call, theirs, left, site } = await started;
    const none = '01a00000-0000-7000-8000-000000000000';
    const { data } = await site.call(`${rule}.list`, { limit: 1000 });
    assert.ok(data.rows.length > 0);
    const ways: readonly ((id: string) => Promise<Answer>)[] = [
      (id) => call(`${rule}.read`, { id }),
      (id) => call(`${rule}.read`, { id }, { qk: 'history' }),
      (id) => call(`${rule}.edit`, { id, content: 'mine' }),
      (id) => call(`${rule}.edit`, { id, path: '/blog/mine' }, { vk: `vk ${id}` }),
      (id) => call(`${rule}.invalidate`, { id }),
      (id) => call(`${rule}.invalidate`, { txn: id }),
      (id) => call('svc1.draft.read', { draft: id }),
      (id) => call('svc1.draft.publish', { draft: id }),
      (id) => call('svc1.draft.comment', { draft: id, text: 'x' }),
      (id) => call(`${rule}.read`, { id: none }, { draft: id }),
    ];
    for (const [at, way] of ways.entries()) {
      const missing = failureOf(await way(none), none);
      for (const id of [...Object.values(theirs), left]) {
        assert.deepEqual(failureOf(await way(id), id), missing, `${at} ${id}`);
      }
    }
  });

  test('a rule shows an asset that is shown inside, and brings none in', async () => {
    const { call, site, ours } = await started;
    for (const name of ['report.txt', 'logo.png']) {
      const headers = { apikey: site.adminKey };
      await fetch(`${site.url}/svc1/asset/${name}`, { method: 'PUT', body: secret, headers });
    }
    await site.call(`${rule}.insert`, { path: '/logo', asset: 'logo.png' });
    const shown = { origin, path: '/blog/logo', asset: 'logo.png' };
    assert.equal((await site.call(`${rule}.insert`, shown)).error, undefined);
    const { data: kept } = await site.call(`${rule}.insert`, {
      ...{ origin, path: '/blog/kept', kind: 'resolve' },
      ...{ asset: 'report.txt', enginedata: { target: '/' } },
    });
    assert.deepEqual(kept.unknowns, ['asset']);

    const { data: draft } = await call('svc1.draft.insert', { name: 'assets' });
    const line = (v: object) => JSON.stringify({ origin, path: '/blog/new', ...v });
    const refused: readonly (readonly [string, object, object?])[] = [
      ['insert', { origin, path: '/blog/x', asset: 'report.txt' }],
      ['insert', { origin, path: '/blog/x', asset: 'none.txt' }],
      ['insert', { origin, path: '/blog/x', asset: 'report.txt' }, { draft: draft.id }],
      ['edit', { id: ours.below, content: null, asset: 'report.txt' }],
      // An asset that waits in a rule of another kind.
      ['edit', { id: kept.id, kind: 'content', enginedata: null }],
    ];
    const messages = [];
    for (const [verb, v, more = {}] of refused) {
      const { error } = await call(`${rule}.${verb}`, v, more);
      assert.deepEqual([error?.code, error?.field], ['forbidden', 'asset'], JSON.stringify(v));
      messages.push(error?.message.replace('none.txt', 'report.txt'));
    }
    assert.equal(new Set(messages).size, 1, 'it does not tell which assets there are');
    const { data: imported } = await call(`${rule}.import`, {
      ndjson: [line({ asset: 'report.txt' }), line({ asset: 'logo.png' })].join('\n'),
      dry_run: true,
    });
    assert.deepEqual(
      imported.refusals.map(({ line: at }: { readonly line: number }) => at),
      [1],
    );

    const { data: own } = await call(`${rule}.insert`, { ...shown, path: '/blog/x' });
    assert.equal(own.asset, 'logo.png');
    assert.equal((await call(`${rule}.edit`, { id: own.id, rve: 1 })).data.rve, 1);
    await call('svc1.draft.invalidate', { draft: draft.id });
  });

  test('a rule may not leave, and none may be brought in', async () => {
    const { call, ours, site } = await started;
    const outside = [{ path: '/elsewhere' }, { origin: 'https://two.example' }, { origin: '*' }];
    for (const place of outside) {
      const edited = await call(`${rule}.edit`, { id: ours.page, ...place });
      assert.equal(edited.error?.code, 'forbidden');
      const inserted = await call(`${rule}.insert`, {
        origin,
        path: '/blog/x',
        content: 'x',
        ...place,
      });
      assert.equal(inserted.error?.code, 'forbidden');
    }
    for (const path of ['/blog*', '/blogger', '/blog', '/*', 'blog/']) {
      const { error } = await call(`${rule}.insert`, { origin, path, kind: 'resolve' });
      assert.equal(error?.code, 'forbidden', path);
    }
    const source = { kind: 'content.fetch', enginedata: { source: 'https://a.example/' } };
    const slash = await call(`${rule}.insert`, { origin, path: '/blog%2Fx', ...source });
    assert.equal(slash.error?.code, 'forbidden');
    const everywhere = await call(`${rule}.insert`, { path: '/blog/x', content: 'x' });
    const advice = `Name an origin inside, "origin": "${origin}", or use another key.`;
    assert.equal(everywhere.error?.message.split(' is outside. ')[1], advice);
    const bad = await call(`${rule}.insert`, { origin: 'nothing', path: '/blog/x', content: 'x' });
    assert.equal(bad.error?.code, 'forbidden');
    const { data } = await site.call(`${rule}.read`, { id: ours.page });
    assert.equal(data.path, '/blog/page');
  });

  test('a rule has no header field that browsers apply to more than its part', async () => {
    const { call, site } = await started;
    const id = await insertOurs('/blog/headers');
    const wide = [
      ...['Service-Worker-Allowed', 'strict-transport-security', 'Clear-Site-Data', 'Alt-Svc'],
      ...['Set-Cookie', 'set-cookie[]', 'X-Accel-Redirect', 'X-Sendfile'],
    ].map((name) => [name, '/'] as const);
    for (const [name, value] of [
      ...wide,
      ['X-Seen', `\${request.header.cookie}`],
      ['X-Seen', `a \${request.header.Authorization}`],
    ] as const) {
      const headers = { [name]: value };
      const edited = await call(`${rule}.edit`, { id, headers });
      assert.equal(edited.error?.field, 'headers', name);
      const ndjson = JSON.stringify({ origin, path: '/blog/h', content: 'x', headers });
      assert.equal((await call(`${rule}.import`, { ndjson })).error?.code, 'invalid', name);
      // A rule that has one already can still be edited.
      assert.equal((await site.call(`${rule}.edit`, { id, headers })).error, undefined);
    }
    const { error } = await call(`${rule}.edit`, { id, content: 'new' });
    assert.equal(error, undefined);
    const usual = { 'X-Robots-Tag': 'noindex' };
    assert.equal((await call(`${rule}.edit`, { id, headers: usual })).error, undefined);
  });

  test('a rule gets and sends through its source nothing of the whole origin', async () => {
    const { call, site } = await started;
    const source = 'http://198.51.100.1/';
    const id = await insertOurs('/blog/fetched');
    const wide: readonly object[] = [
      { as: 'application' },
      { pass: ['cookie'] },
      { pass: ['Authorization'] },
      { pass: ['X-Powered-By', 'Set-Cookie'] },
      { pass: ['clear-site-data'] },
      { pass: ['service-worker-allowed'] },
      { pass: ['x-accel-redirect'] },
      { request_headers: { 'X-Theirs': `\${request.header.cookie}` } },
    ];
    for (const more of wide) {
      const enginedata = { source, ...more };
      const what = JSON.stringify(more);
      const v = { kind: 'content.fetch', enginedata };
      const edited = await call(`${rule}.edit`, { id, ...v });
      assert.deepEqual(
        [edited.error?.code, edited.error?.field],
        ['forbidden', 'enginedata'],
        what,
      );
      const ndjson = JSON.stringify({ origin, path: '/blog/h', ...v });
      assert.equal((await call(`${rule}.import`, { ndjson })).error?.code, 'invalid', what);
      // What someone else has given a rule stays, but goes to no other source.
      const given = await site.call(`${rule}.edit`, { id, ...v });
      assert.equal(given.error, undefined, what);
      assert.equal((await call(`${rule}.edit`, { id, label: 'new' })).error, undefined, what);
      const moved = { id, enginedata: { ...enginedata, source: 'http://192.0.2.1/' } };
      assert.equal((await call(`${rule}.edit`, moved)).error?.code, 'forbidden', what);
      const invalid = { id, enginedata: { source: 'http://192.0.2.1/', pass: 7, as: 7 } };
      const waits = await call(`${rule}.edit`, invalid);
      const keeps = 'pass' in more || 'as' in more;
      assert.equal(waits.error?.code, keeps ? 'forbidden' : undefined, what);
    }
    const usual = { source, pass: ['x-powered-by'], request_headers: { 'X-Ip': `\${client.ip}` } };
    const { error } = await call(`${rule}.edit`, { id, enginedata: usual });
    assert.equal(error, undefined);
  });

  test('the past of a rule is that inside', async () => {
    const { call, ours, left } = await started;
    const { data: history } = await call(`${rule}.read`, { id: ours.came }, { qk: 'history' });
    assert.equal(history.rows.length, 1);
    const [{ seq }] = history.rows as [{ seq: number }];
    const before = await call(`${rule}.read`, { id: ours.came, as_of: String(seq - 1) });
    assert.equal(before.error?.code, 'not_found');
    const here = await call(`${rule}.read`, { id: left, as_of: String(seq) });
    assert.equal(here.data.content, 'when here');
    const { data: then } = await call(`${rule}.list`, { as_of: String(seq - 1) });
    assert.ok((then.rows as { id: string }[]).every(({ id }) => id !== ours.came));
  });

  test('an undo cannot bring back what a rule had elsewhere', async () => {
    const { call, ours, site, txn } = await started;
    const rows = (await site.call(`${rule}.read`, { id: ours.came }, { qk: 'history' })).data.rows;
    for (const { seq } of rows as { seq: number }[]) {
      const v = { id: ours.came, from: String(seq), until: String(seq) };
      const { error, data } = await call(`${rule}.invalidate`, v);
      assert.ok(error?.code === 'forbidden' || data.gone === 1, JSON.stringify(data));
    }
    await call(`${rule}.edit`, { id: ours.came, content: 'ours now' });
    const by = (await call('svc1.session.read', {})).data.key as string;
    const { data } = await call(`${rule}.invalidate`, { by, id: ours.came });
    assert.deepEqual(data.changes[0].fields.content, { now: 'ours now', then: 'came' });
    const mixed = await call(`${rule}.invalidate`, { txn });
    assert.equal(mixed.error?.code, 'forbidden');
    // The part of it that is inside can still be undone by its record.
    const part = await call(`${rule}.invalidate`, { txn, id: ours.mixed });
    assert.equal(part.data.records, 1);
  });

  test('a subscriber gets a rule that leaves as removed', async () => {
    const { site, apikey } = await started;
    const id = await insertOurs('/blog/leaves');
    const socket = await site.socket(apikey);
    const { data } = await socket.call(`${rule}.subscribe`, {});
    const packet = async (): Promise<Answer> => {
      const [bytes] = (await once(socket.websocket, 'message')) as [Buffer];
      return JSON.parse(bytes.toString()) as Answer;
    };
    const first = packet();
    await site.call(`${rule}.insert`, { path: '/secret', content: secret });
    const moved = { id, path: `/${secret}/away`, content: secret };
    await site.call(`${rule}.edit`, moved);
    const { data: sent } = await first;
    assert.ok((sent.seq as number) > (data.seq as number) + 1);
    assert.deepEqual([sent.action, sent.data, sent.record], ['invalidate', { id }, null]);
    const second = packet();
    await site.call(`${rule}.edit`, { id, path: '/blog/back', content: 'back' });
    assert.equal((await second).data.record.content, 'back');
  });

  test('a vk that others have used tells nothing', async () => {
    const { call, site, theirs } = await started;
    const v = { origin, path: '/blog/same', content: 'same' };
    const { data } = await site.call(`${rule}.insert`, v, { vk: 'chosen' });
    await site.call(`${rule}.edit`, { id: data.id, path: `/${secret}/same` });
    const own = await call(`${rule}.insert`, v);
    assert.notEqual(own.data.id, data.id);
    assert.equal((await call(`${rule}.insert`, v)).replayed, true);
    const vk = `rule:${theirs.around ?? ''}`;
    const ndjson = JSON.stringify({ origin, path: '/blog/taken', content: 'x', vk });
    const imported = await call(`${rule}.import`, { ndjson });
    assert.equal(imported.data.imported, 1);
    assert.equal((await call(`${rule}.import`, { ndjson })).data.unchanged, 1);
    const outside = JSON.stringify({ origin, path: '/away', content: 'x' });
    const refused = await call(`${rule}.import`, { ndjson: `${ndjson}\n${outside}` });
    assert.match(refused.error?.message ?? '', /line 2: this key is bound to/);
  });
});

suite('what answers, for a bound key', () => {
  test('pages and breadcrumbs are those inside', async () => {
    const { call } = await started;
    const get = (name: string, v: object) => call(`${rule}.${name}`, { origin, ...v });
    assert.equal((await get('get', { path: '/blog/page' })).data.content, 'ours');
    assert.equal((await get('get', { path: '/other' })).error?.code, 'forbidden');
    assert.equal((await get('get_content', { path: '/blog/filed.html' })).status, 404);
    assert.equal((await get('get_resolve', { k: '/blog/go' })).data.target, '/blog/page');
    assert.equal((await get('get_resolve', { k: '/blog/on' })).error?.code, 'not_found');
    assert.equal((await get('get_resolve', { k: 'beyond' })).error?.code, 'forbidden');
    const { data } = await get('explain', { path: '/blog/filed.html' });
    assert.equal(data.winner, null);
    assert.equal(JSON.stringify(data).includes(secret), false);
  });

  test('the tree begins at the paths of the key', async () => {
    const { call } = await started;
    assert.deepEqual((await call(`${rule}.tree`, {})).data.origins, [origin]);
    const names = async (path: string): Promise<readonly string[]> => {
      const { data } = await call(`${rule}.tree`, { origin, path });
      return (data.rows as { name: string }[]).map(({ name }) => name);
    };
    assert.deepEqual(await names(''), ['/blog/']);
    assert.deepEqual(await names('/'), ['blog/']);
    const below = await names('/blog/');
    for (const name of ['*', 'came', 'go', 'on', 'page']) assert.ok(below.includes(name), name);
    assert.ok(!below.includes('filed.html'));
    assert.equal((await call(`${rule}.tree`, { origin, path: '/x' })).error?.code, 'forbidden');
  });

  test('the tree of a key for paths has rules of every origin, and no files', async () => {
    const { call, key, site } = await started;
    const apikey = await key(['read'], { paths: [inside.path] });
    const { data: whole } = await site.call(`${rule}.tree`, { origin: '*', path: '/blog/' });
    assert.ok(JSON.stringify(whole).includes(`${secret}files`));
    const v = { origin: '*', path: '/blog/', shadows: true };
    const { data } = await call(`${rule}.tree`, v, { apikey });
    assert.equal(data.hidden_mounts, undefined);
    assert.ok(!JSON.stringify(data).includes(`${secret}files`));
    const { data: first } = await call(`${rule}.tree`, {}, { apikey });
    assert.deepEqual(first.origins, ['*', origin, 'https://two.example']);
  });

  test('no page tells it the source of an answer', async () => {
    const { site, apikey } = await started;
    const page = await fetch(`${site.url}/blog/filed.html`, { headers: { apikey } });
    assert.equal(page.headers.get('server-timing'), null);
    const metrics = await fetch(`${site.url}/svc1/metrics`, {
      headers: { apikey, 'x-forwarded-for': '192.0.2.1' },
    });
    assert.ok([200, 403].includes(metrics.status));
  });
});

test('a draft of a bound key is published, and one with more than its part is not there', async () => {
  const { call, site, ours, theirs } = await started;
  await call('svc1.draft.insert', { name: 'mine' });
  await call(`${rule}.edit`, { id: ours.page, content: 'drafted' }, { draft: 'mine' });
  const compared = await call('svc1.draft.compare', { draft: 'mine' });
  assert.equal(compared.data.differing, 1);
  const away = { draft: 'mine', urls: `${origin}/${secret}/left` };
  assert.equal((await call('svc1.draft.compare', away)).error?.code, 'forbidden');
  await site.call(`${rule}.edit`, { id: theirs.around, content: 'other' }, { draft: 'mine' });
  for (const name of ['read', 'changes', 'compare', 'publish', 'preview', 'approve', 'submit']) {
    const v = { draft: 'mine', ...(name === 'approve' && { confirm: 'x' }) };
    const { error } = await call(`svc1.draft.${name}`, v);
    assert.equal(error?.code, 'not_found', name);
  }
  assert.deepEqual((await call('svc1.draft.list', {})).data.rows, []);
  await call('svc1.draft.insert', { name: 'second' });
  await call(`${rule}.edit`, { id: ours.page, content: 'drafted' }, { draft: 'second' });
  const { data } = await call('svc1.draft.publish', { draft: 'second' });
  const done = await call('svc1.draft.publish', { draft: 'second', confirm: data.digest });
  assert.equal(done.data.records, 1);
  assert.equal((await call(`${rule}.invalidate`, { txn: done.data.txn })).data.changed, 1);
});

test('a preview of a bound key ends while its draft changes something outside', async () => {
  const { call, site, ours, theirs } = await started;
  await call('svc1.draft.insert', { name: 'previewed' });
  await call(`${rule}.edit`, { id: ours.page, content: 'drafted' }, { draft: 'previewed' });
  const { data } = await call('svc1.draft.preview', { draft: 'previewed' });
  const opens = async (): Promise<boolean> => {
    const reply = await fetch(data.url as string, { redirect: 'manual' });
    return reply.status < 400;
  };
  assert.equal(await opens(), true);
  const { around: id } = theirs;
  await site.call(`${rule}.edit`, { id, content: 'other' }, { draft: 'previewed' });
  assert.equal(await opens(), false);
});

suite('a bound key', () => {
  test('has its bounds in canonical form, in its session as well', async (t) => {
    const site = await startSite(t);
    const given = { origins: ['HTTPS://One.example:443/'], paths: ['/caf%C3%A9/'] };
    const { data } = await site.call('svc1.key.insert', { name: 'a', scopes: ['read'], ...given });
    const canonical = { origins: [origin], paths: ['/café/'] };
    const { origins, paths } = data;
    assert.deepEqual({ origins, paths }, canonical);
    const { data: listed } = await site.call('svc1.key.list', {});
    assert.deepEqual(listed.rows.at(-1).paths, canonical.paths);
    const session = await site.call('svc1.session.insert', { apikey: data.key });
    assert.deepEqual(session.data.origins, canonical.origins);
  });

  test('cannot have a scope, an origin or a path that bounds nothing', async (t) => {
    const site = await startSite(t);
    const refused = [
      { scopes: ['admin'], ...bounds },
      { scopes: ['read', 'webhook'], ...bounds },
      { scopes: ['record.read:products'], ...bounds },
      { scopes: ['read'], origins: ['*'] },
      { scopes: ['read'], origins: [] },
      { scopes: ['read'], paths: ['/*'] },
      { scopes: ['read'], paths: ['blog'] },
      { scopes: ['read'], paths: ['/a/../b'] },
    ];
    for (const v of refused) {
      const { error } = await site.call('svc1.key.insert', { name: 'a', ...v });
      assert.equal(error?.code, 'invalid', JSON.stringify(v));
    }
  });
});
