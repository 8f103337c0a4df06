import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { startSite, type Answer, type TestSite } from '../../harness.ts';
import { loginIni, startProvider } from '../login/provider.ts';
import { TestVisitor } from '../login/visitor.ts';
import { overHttp, overWebsocket, type Call } from './callers.ts';
import { operations } from '../../../src/modules.ts';
import { checkAgainst, fetchDocument } from './documents.ts';

const rule = 'svc1.userinterface';
const origin = 'http://shop.example';

const everyField = {
  origin,
  path: '/lamps/*',
  kind: 'content',
  table: 'lamps',
  designed_at: '2026-01-31T12:00:00Z',
  lang: 'en',
  contenttype: 'text/html',
  httpresponse: 203,
  engine: 'html',
  enginedata: { html: '<h1>Lamp</h1>' },
  enginecomments: 'brass',
  rve: 1.5,
  content: '<p>one</p>',
};

/** A value for a required field that is no text. */
const samples: Readonly<Record<string, unknown>> = {
  topics: ['keys'],
  ...{ scopes: ['read'], role: 'replica' },
  ...{ seq: 0, now: 0, waiting: 0, refused: 0, entries: [], n: 1 },
};

/** Uploads a file, and calls the operations on assets. */
async function callAssets({ url, adminKey }: TestSite, call: Call, seen: Set<string>) {
  const headers = { apikey: adminKey };
  await fetch(`${url}/svc1/asset/pier.txt`, { method: 'PUT', body: 'pier', headers });
  await call(`${rule}.insert`, { path: '/pier', asset: 'pier.txt' });
  const name = 'pier.txt';
  const plan = await call('svc1.asset.invalidate', { name });
  for (const [verb, v] of [
    ['list', {}],
    ['list', { text: 'pier', type: 'text/', unused: false }],
    ['read', { name }],
    ['invalidate', { name, confirm: plan.data.digest }],
  ] as const) {
    const { error } = await call(`svc1.asset.${verb}`, v);
    assert.equal(error, undefined, verb);
    seen.add(`svc1.asset.${verb}`);
  }
}

/** Calls every operation at least once, with most forms of its answer. */
async function callAll(call: Call, seen: Set<string>): Promise<void> {
  const ask: Call = async (name, v, more) => {
    const answer = await call(name, v, more);
    assert.equal(answer.error, undefined, `${name}: ${answer.error?.message}`);
    seen.add(name);
    return answer;
  };
  const first = await ask(`${rule}.insert`, everyField, { vk: 'first' });
  await ask(`${rule}.insert`, everyField, { vk: 'first' });
  await ask(`${rule}.insert`, { path: '/bytes', content: { base64: 'AAH/' } });
  const far = { kind: 'content.fetch', enginedata: { source: 'http://x.example/*' } };
  await ask(`${rule}.insert`, { path: '/far/*', ...far });
  await ask(`${rule}.insert`, { path: 'spring', kind: 'resolve', enginedata: { target: '/a' } });
  await ask(`${rule}.insert`, { path: 'note', kind: 'resolve', enginedata: { html: '<p>!</p>' } });

  const { id, seq } = first.data;
  const edit = {
    id,
    if_seq: seq,
    rve: null,
    content: '<p>two</p>',
    _unknowns_: { colour: 'blue' },
  };
  await ask(`${rule}.edit`, edit);
  await ask(`${rule}.read`, { id });
  await ask(`${rule}.read`, { id, as_of: String(seq) });
  await ask(`${rule}.read`, { id, limit: 10 }, { qk: 'history' });
  await ask(`${rule}.list`, { limit: 2, kind: 'content' });
  await ask(`${rule}.list`, { text: 'brass' });
  const ndjson = '{"path":"/imported","content":"x","colour":"red"}';
  await ask(`${rule}.import`, { ndjson: `${ndjson}\nnonsense`, dry_run: true });
  await ask(`${rule}.import`, { ndjson });

  const place = { origin, path: '/lamps/tern' };
  await ask(`${rule}.get`, place);
  await ask(`${rule}.get_render`, { ...place, query: 'a=1&a=2&b=3' });
  await ask(`${rule}.get_content`, { ...place, headers: { accept: 'text/html' } });
  await ask(`${rule}.get_content`, { origin, path: '/bytes' });
  await ask(`${rule}.get_resolve`, { k: 'spring' });
  await ask(`${rule}.get_resolve`, { k: 'note' });
  await ask(`${rule}.link.htm`, { k: 'spring' });
  await ask(`${rule}.link.htm`, { k: 'note' });
  await ask(`${rule}.explain`, { ...place, lang: 'de' });
  await ask(`${rule}.explain`, { origin, path: '/far/x' });
  await ask(`${rule}.explain`, { origin, path: '/nowhere' });
  await ask(`${rule}.explain`, { k: 'spring' });

  const since = { id, from: String(Number(seq) + 1) };
  const { data: dry } = await ask(`${rule}.invalidate`, since);
  const confirmed = { ...since, confirm: dry.digest };
  await ask(`${rule}.invalidate`, confirmed, { vk: 'undo' });
  await ask(`${rule}.invalidate`, confirmed, { vk: 'undo' });
  await ask(`${rule}.read`, { id }, { qk: 'history' });

  const operations = [{ a: `${rule}.insert`, v: { path: '/batch', content: 'x', colour: 'red' } }];
  await ask('svc1.batch', { operations, dry: true });
  const { data: batched } = await ask('svc1.batch', { operations }, { vk: 'many' });
  await ask('svc1.batch', { operations }, { vk: 'many' });
  const { data: whole } = await ask('svc1.change.invalidate', { txn: batched.txn });
  await ask('svc1.change.invalidate', { txn: batched.txn, confirm: whole.digest });

  await callDrafts(ask);
  await callHooks(ask);
  await callTables(ask);
  await ask('svc1.cache.list', { prefix: '/far/', limit: 1 });
  await ask('svc1.cache.purge', { rule: id });
  await ask('svc1.cache.status');
  const { data: made } = await ask('svc1.key.insert', { name: 'ci', scopes: ['read'] });
  await ask('svc1.key.edit', { id: made.id, until: '2999-12-31T18:00Z' });
  await ask('svc1.key.read', { id: made.id });
  await ask('svc1.key.list');
  await ask('svc1.server.status');
  await ask('svc1.server.configuration');
  await ask('svc1.source.list');
  await ask('svc1.metrics.series', { last: '24h' });
  await ask('svc1.breadcrumb.visits');
  const wanted = { k: 'spring', user: 'anna', until: '2999-12-31T18:00Z' };
  const { data: token } = await ask('svc1.breadcrumb.token', wanted, { vk: 'token' });
  await ask('svc1.breadcrumb.token', wanted, { vk: 'token' });
  await ask('svc1.breadcrumb.tokens', { k: 'spring' });
  await ask('svc1.breadcrumb.revoke_token', { id: token.id });
  await ask('svc1.visit.summary');
  await ask('svc1.breadcrumb.visits', { k: 'spring', from: '2026-11-01', until: '2026-11-03' });
  await ask('svc1.change.list', { limit: 5 });
  await ask(`${rule}.tree`);
  await ask(`${rule}.tree`, { origin: '*', path: '/' });
  await ask('svc1.session.unsubscribe', { id: 'none' });
  await ask('svc1.session.authenticate', { apikey: made.key });
}

const everyHookField = {
  name: 'till',
  event: ['sale.completed', 'stock.level_changed'],
  url: 'https://shop.example/hooks',
  method: 'PUT',
  headers: { 'X-Shop': 'harbour' },
  where: 'counters',
  frequency: { mode: 'batch', every: '5m', max_events: 10, max_bytes: '64KiB' },
  filter: { shop: 'harbour' },
  order: true,
  retry_limit: 3,
  active: true,
};

/** The operations on drafts, with a conflict. */
async function callDrafts(ask: Call): Promise<void> {
  const draft = 'spring';
  const { data: live } = await ask(`${rule}.insert`, { path: '/live', content: 'live' });
  await ask('svc1.draft.insert', { name: draft, comment: 'For May.' });
  await ask('svc1.draft.insert', { name: 'other' });
  await ask('svc1.draft.edit', { draft: 'other', name: 'autumn' });
  await ask('svc1.draft.invalidate', { draft: 'autumn' });
  await ask(`${rule}.edit`, { id: live.id, content: 'drafted' }, { draft });
  await ask(`${rule}.insert`, { path: '/drafted', content: 'new' }, { draft });
  const words = { find: 'new', with: 'newest', path: '/drafted' };
  const { data: found } = await ask(`${rule}.replace`, words, { draft });
  const pages = { [found.rows[0].id]: found.rows[0].seq };
  await ask(`${rule}.replace`, { ...words, pages }, { draft });
  await ask(`${rule}.edit`, { id: live.id, content: 'newer' });
  await ask('svc1.draft.comment', { draft, text: 'Looks good.' });
  await ask('svc1.draft.submit', { draft });
  const { data: seen } = await ask('svc1.draft.changes', { draft });
  await ask('svc1.draft.approve', { draft, confirm: seen.digest });
  const { data: preview } = await ask('svc1.draft.preview', { draft, seconds: 60 });
  await ask('svc1.draft.read', { draft });
  await ask('svc1.draft.revoke', { draft, id: preview.id });
  await ask('svc1.draft.list', { limit: 1 });
  await ask('svc1.draft.changes', { draft, limit: 1 });
  await ask('svc1.draft.compare', { draft, urls: `${origin}/live`, lang: 'de' });
  const { data: report } = await ask('svc1.draft.publish', { draft, others: 'draft' });
  const confirmed = { draft, others: 'draft', confirm: report.digest };
  const at = { at: '2999-12-01T08:00', time_zone: 'Europe/Berlin' };
  await ask('svc1.draft.publish', { ...confirmed, ...at });
  await ask('svc1.draft.list', { scheduled: true });
  await ask('svc1.draft.unschedule', { draft });
  await ask('svc1.draft.publish', confirmed);
  await ask('svc1.draft.list', { state: 'published' });
  await ask(`${rule}.edit`, { id: live.id, content: 'after it' });
  const { data: undo } = await ask('svc1.draft.undo', { draft });
  await ask('svc1.draft.undo', { draft, others: 'undo', confirm: undo.digest });
  const until = '2999-12-01T08:00[Europe/Berlin]';
  await ask(`${rule}.insert`, { path: '/limited', content: 'x', from: '2998-01-01T00:00Z', until });
  await ask(`${rule}.times`, { limit: 1 });
  await ask(`${rule}.times`, {});
}

/** The operations on tables and their rows. */
async function callTables(ask: Call): Promise<void> {
  const properties = {
    sku: { type: 'string' },
    price: { type: 'number' },
    like: { type: 'string', 'x-table': 'finishes' },
  };
  const schema = { type: 'object', required: ['sku'], properties };
  const definition = { name: 'finishes', schema, key: 'sku', index: ['price'], search: ['sku'] };
  const { data: made } = await ask('svc1.table.insert', definition);
  const table = 'finishes';
  const v = { table, sku: 'brass', price: 1.5, like: 'slate', weight: 2 };
  const { data: row } = await ask('svc1.record.insert', v, { vk: 'row' });
  await ask('svc1.record.insert', v, { vk: 'row' });
  await ask('svc1.record.insert', { table, sku: 'slate' });
  await ask('svc1.record.edit', { table, id: row.id, if_seq: row.seq, price: 'dear' });
  await ask('svc1.record.read', { table, id: row.id });
  await ask('svc1.record.read', { table, id: row.id, limit: 1 }, { qk: 'history' });
  await ask('svc1.record.list', {
    table,
    where: { price: { '>': 1 } },
    sort: '-price',
    count: true,
  });
  await ask('svc1.record.get', { table, id: row.id });
  await ask('svc1.record.get', { table, text: 'bra', limit: 1 });
  await ask('svc1.record.schema', { table });
  await ask('svc1.record.check', { table, id: row.id });
  await ask('svc1.record.check', { table });
  await ask('svc1.table.counts');

  const narrower = { ...properties, price: { type: 'integer' } };
  const narrow = { id: made.id, schema: { ...schema, properties: narrower } };
  const { data: report } = await ask('svc1.table.edit', narrow);
  await ask('svc1.table.edit', { ...narrow, confirm: report.digest });
  // The server corrects the rows meanwhile.
  for (let isPending = true; isPending;) {
    const { data: now } = await ask('svc1.table.read', { id: made.id });
    isPending = now.rows_pending === true;
  }
  await ask('svc1.table.list', { name: table });
  for (const { id } of (await ask('svc1.record.list', { table })).data.rows) {
    const { data: dry } = await ask('svc1.record.invalidate', { table, id });
    await ask('svc1.record.invalidate', { table, id, confirm: dry.digest });
  }
  const { data: dry } = await ask('svc1.table.invalidate', { id: made.id });
  await ask('svc1.table.invalidate', { id: made.id, confirm: dry.digest });
}

/** The operations on hooks and events. */
async function callHooks(ask: Call): Promise<void> {
  const hook = 'svc1.webhook';
  const { data: first } = await ask(`${hook}.insert`, everyHookField, { vk: 'first hook' });
  await ask(`${hook}.insert`, everyHookField, { vk: 'first hook' });
  // The server refuses to connect to this address, so the attempt ends at once.
  const { data: refused } = await ask(`${hook}.insert`, {
    ...{ event: ['*'], url: 'http://127.0.0.1:1/', headers: { 'x-a': 'b' } },
  });
  const { id, seq } = first;
  await ask(`${hook}.edit`, { id, if_seq: seq, name: null, _unknowns_: { colour: 'blue' } });
  await ask(`${hook}.edit`, { id, frequency: { mode: 'batch', every: '25h' } });
  await ask(`${hook}.edit`, { id, frequency: { mode: 'batch', at: ['02:00'], zone: 'UTC' } });
  await ask(`${hook}.test`, { id }, { vk: 'try' });
  await ask(`${hook}.rotate`, { id }, { vk: 'leak' });
  await ask(`${hook}.rotate`, { id }, { vk: 'leak' });
  await ask(`${hook}.pause`, { id });
  await ask(`${hook}.resume`, { id });
  await ask(`${hook}.read`, { id });
  await ask(`${hook}.read`, { id, limit: 5 }, { qk: 'history' });
  await ask(`${hook}.list`, { event: 'sale.completed', active: true, text: 'shop', limit: 1 });
  await ask(`${hook}.replay`, { id, failed: true }, { vk: 'again' });
  await ask(`${hook}.replay`, { id, failed: true }, { vk: 'again' });
  await ask(`${hook}.deliveries`, { id, outcome: 'failed', limit: 1 });
  for (let isPending = true; isPending;) {
    const { data: sent } = await ask(`${hook}.deliveries`, { id: refused.id });
    isPending = sent.rows.length === 0;
  }
  await ask(`${hook}.delivery`, { id: refused.id, delivery: '1' });
  await ask(`${hook}.health`, { limit: 1 });
  await ask(`${hook}.health`, { id: refused.id });
  const { data: dry } = await ask(`${hook}.invalidate`, { id });
  await ask(`${hook}.invalidate`, { id, confirm: dry.digest });

  const time = '2026-11-21T12:00:00.000Z';
  const sale = { type: 'sale.completed', data: { total: 1 }, occurred_at: time, counter: '7' };
  const { data: sold } = await ask('svc1.event.insert', sale, { vk: 'sale' });
  await ask('svc1.event.insert', sale, { vk: 'sale' });
  await ask('svc1.event.read', { id: sold.id });
  await ask('svc1.event.list', { type: 'sale.completed', counter: '7', limit: 1 });
  await ask('svc1.event.list', { before: 1_000 });
  await ask('svc1.event.types');
}

/** The operations that nodes call, with the key of a node. */
async function callNode(call: Call, seen: Set<string>): Promise<void> {
  const node = { node: 'n1', protocol: 1 };
  const ask = async (name: string, v: object) => {
    const answer = await call(name, { ...node, ...v });
    assert.equal(answer.error, undefined, name);
    seen.add(name);
    return answer;
  };
  const { log } = (await ask('svc1.log.end', {})).data;
  await ask('svc1.log.rows', { log, seq: 0, txn: '' });
  const state = { role: 'counter', place: 'zurich', version: '1', seq: 0, now: 0 };
  await ask('svc1.node.report', { ...state, waiting: 1, refused: 0, deliveries: {} });
  await ask('svc1.node.secrets', { role: 'counter' });
  const entry = { a: 'svc1.event.insert', dtu_txn: '2026-11-21T12:00:00.000Z' };
  const error = { type: 'error.detected', data: { message: 'x' } };
  const entries = [
    { ...entry, id: '0198c0de-0000-7000-8000-000000000001', v: error },
    { ...entry, id: '0198c0de-0000-7000-8000-000000000002', v: { type: 'a.sale' } },
  ];
  const { results } = (await ask('svc1.node.insert', { entries })).data;
  assert.equal(results[1].error.code, 'forbidden');
}

const lamps = '[table.lamps]\nschema = lamps.json\n[engine.globe]\nscript = /globe.js\n';
const files = { 'lamps.json': '{"type":"object"}' };

const transports = { HTTP: overHttp, websocket: overWebsocket };

for (const [transport, open] of Object.entries(transports)) {
  suite(`the documents of the API, over ${transport}`, () => {
    test('describe the answers of every operation, without other members', async (t) => {
      const ini = lamps + loginIni(await startProvider(t));
      const site = await startSite(t, { ini, files });
      const seen = new Set<string>();
      await callAll(await open(site, site.adminKey), seen);
      // The websocket has another caller since then.
      const admin = await open(site, site.adminKey);
      const { rows } = (await admin('svc1.key.list')).data;
      const revoked = await admin('svc1.key.revoke', { id: rows.at(-1).id });
      assert.equal(revoked.data.revoked, true);
      seen.add('svc1.key.revoke');
      // Only an answer over HTTP can set the cookie of a session.
      const overHttpToo = await overHttp(site, site.adminKey);
      const { data: made } = await overHttpToo('svc1.session.insert', { apikey: site.adminKey });
      for (const [verb, v] of [['read'], ['list'], ['end', { id: made.id }]] as const) {
        const { error } = await admin(`svc1.session.${verb}`, v);
        assert.equal(error, undefined, verb);
      }
      for (const verb of ['insert', 'read', 'list', 'end']) seen.add(`svc1.session.${verb}`);
      await callAssets(site, admin, seen);
      const nodeKey = { name: 'n', scopes: ['follow'], node: 'n1' };
      const { data: ofNode } = await overHttpToo('svc1.key.insert', nodeKey);
      await callNode(await open(site, ofNode.key), seen);
      const { data: nodes } = await admin('svc1.node.list');
      assert.equal(nodes.rows.length, 1);
      seen.add('svc1.node.list');
      await admin('svc1.outbox.list', { refused: true, limit: 1 });
      for (const verb of ['retry', 'discard']) {
        assert.equal((await admin(`svc1.outbox.${verb}`, { n: 1 })).error?.code, 'not_found');
        seen.add(`svc1.outbox.${verb}`);
      }
      seen.add('svc1.outbox.list');
      const visitor = new TestVisitor();
      await visitor.follow(`${site.url}/svc1/login/sign-in`);
      const { rows: logins } = (await admin('svc1.login.list', { user: 'ann' })).data;
      assert.equal((await admin('svc1.login.end', { id: logins[0].id })).data.ended, true);
      const grant = { grant: 'x', state: 'x' };
      const refused = await admin('svc1.login.console', grant);
      assert.equal(refused.error?.code, transport === 'HTTP' ? 'unauthenticated' : 'invalid');
      for (const verb of ['list', 'end', 'console']) seen.add(`svc1.login.${verb}`);
      const missing = operations
        .filter(({ name, effect }) => !seen.has(name) && effect !== 'streams')
        .map(({ name }) => name);
      assert.deepEqual(missing, [], 'operations that this test does not call');
    });

    const refusals: readonly (readonly [string, object, string])[] = [
      [`${rule}.insert`, { path: '/a/../b', content: 'x' }, 'invalid'],
      [`${rule}.insert`, { path: `/${'a'.repeat(5000)}`, content: 'x' }, 'too_large'],
      [`${rule}.insert`, { ...everyField, content: 'other' }, 'conflict'],
      [`${rule}.edit`, { id: 'none' }, 'not_found'],
      [`${rule}.edit`, { if_seq: 1, rve: 2 }, 'precondition_failed'],
      [`${rule}.edit`, { rve: 2 }, 'conflict'],
      [`${rule}.read`, { id: 'none' }, 'not_found'],
      [`${rule}.invalidate`, { txn: 'none' }, 'not_found'],
      [`${rule}.invalidate`, { confirm: 'other' }, 'precondition_failed'],
      [`${rule}.invalidate`, { confirm: 'used' }, 'conflict'],
      [`${rule}.get`, { origin, path: '/nowhere' }, 'not_found'],
      [`${rule}.get_render`, { origin, path: '/nowhere' }, 'not_found'],
      [`${rule}.get_content`, { origin, path: '/svc1/nowhere' }, 'not_found'],
      [`${rule}.get_content`, { origin, path: '/far/x' }, 'bad_gateway'],
      [`${rule}.get_resolve`, { k: 'none' }, 'not_found'],
      [`${rule}.get_resolve`, { k: 'circle' }, 'unprocessable'],
      [`${rule}.link.htm`, { k: 'none' }, 'not_found'],
      [`${rule}.link.htm`, { k: 'circle' }, 'unprocessable'],
      ['svc1.webhook.insert', { event: ['sale.completed'], url: '/' }, 'invalid'],
      ['svc1.webhook.insert', { event: ['a.b'], url: 'http://x.example/' }, 'conflict'],
      ['svc1.webhook.edit', { id: 'none', order: true }, 'not_found'],
      ['svc1.webhook.read', { id: 'none' }, 'not_found'],
      ['svc1.webhook.invalidate', { id: 'none' }, 'not_found'],
      ['svc1.webhook.rotate', { id: 'none' }, 'not_found'],
      ['svc1.webhook.pause', { id: 'none' }, 'not_found'],
      ['svc1.webhook.resume', { id: 'none' }, 'not_found'],
      ['svc1.webhook.test', { id: 'none' }, 'not_found'],
      ['svc1.webhook.deliveries', { id: 'none' }, 'not_found'],
      ['svc1.webhook.delivery', { id: 'none', delivery: '1' }, 'not_found'],
      ['svc1.webhook.health', { id: 'none' }, 'not_found'],
      ['svc1.webhook.replay', { id: 'none', failed: true }, 'not_found'],
      ['svc1.event.insert', { type: 'sale' }, 'invalid'],
      ['svc1.event.insert', { type: 'sale.completed' }, 'conflict'],
      ['svc1.event.insert', { type: 'a.b', data: { text: 'x'.repeat(2 ** 18) } }, 'too_large'],
      ['svc1.cache.purge', { url: '/a', prefix: '/b' }, 'invalid'],
      ['svc1.key.revoke', { id: 'none' }, 'not_found'],
      ['svc1.session.authenticate', { apikey: 'wmk_wrong' }, 'unauthenticated'],
    ];
    test('describe the failures', async (t) => {
      const site = await startSite(t, {
        rules: [
          { path: 'circle', kind: 'resolve', enginedata: { target: 'key:circle' } },
          { path: '/far/*', kind: 'content.fetch', enginedata: { source: 'http://127.0.0.1:1/*' } },
        ],
      });
      const call = await open(site, site.adminKey);
      const { data } = await call(`${rule}.insert`, everyField, { vk: 'used' });
      for (const [name, v, code] of refusals) {
        const sent =
          name === `${rule}.edit` || name === `${rule}.invalidate` ? { id: data.id, ...v } : v;
        const answer = await call(name, sent, code === 'conflict' ? { vk: 'used' } : {});
        assert.equal(answer.error?.code, code, `${name} ${JSON.stringify(v)}`);
      }
      const nobody = await open(site, undefined);
      const { key } = (await call('svc1.key.insert', { name: 'r', scopes: ['render'] })).data;
      const somebody = await open(site, key);
      for (const { name, scope, effect, input, fields = input } of operations) {
        if (scope === undefined || scope === 'render') continue;
        if (effect === 'streams' && transport === 'HTTP') continue;
        const needed = (fields.required ?? []) as readonly string[];
        const v = Object.fromEntries(needed.map((field) => [field, samples[field] ?? 'x']));
        assert.equal((await nobody(name, v)).error?.code, 'unauthenticated');
        assert.equal((await somebody(name, v)).error?.code, 'forbidden');
      }
    });
  });
}

test('describe forms that have the effect of JSON', async (t) => {
  const site = await startSite(t);
  const document = await fetchDocument(`${site.url}/svc1/openapi.json`);
  const { enginedata, ...texts } = everyField;
  const form = {
    ...Object.fromEntries(Object.entries(texts).map(([name, value]) => [`_v.${name}`, value])),
    '_v.enginedata.html': enginedata.html,
    _vk: 'form',
  };
  const type = 'application/x-www-form-urlencoded';
  const path = '/svc1/userinterface/insert';
  const place = ['paths', path, 'post', 'requestBody', 'content', type, 'schema'];
  checkAgainst(document)(place, form);
  const reply = await fetch(`${site.url}${path}`, {
    method: 'POST',
    headers: { apikey: site.adminKey, 'content-type': type },
    body: new URLSearchParams(form),
  });
  const { data, vk } = (await reply.json()) as Answer;
  assert.equal(vk, 'form');
  const { data: other } = await site.call(`${rule}.insert`, { ...everyField, path: '/other' });
  const { id, seq } = data;
  assert.deepEqual(data, { ...other, id, seq, path: everyField.path });
});

test('describe the packets of a subscription', async (t) => {
  const site = await startSite(t, { ini: lamps, files });
  const call = await overWebsocket(site, site.adminKey);
  await call(`${rule}.subscribe`, { origin });
  await site.call(`${rule}.insert`, everyField);
  const { data } = await call.packet();
  assert.equal(data.record.path, everyField.path);
});
