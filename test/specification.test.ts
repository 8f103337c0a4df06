import assert from 'node:assert/strict';
import { suite, test, type TestContext } from 'node:test';
import { startSite, type TestSite } from './harness.ts';
import { startReceiver } from './modules/webhooks/receiver.ts';
import { transports, type Call } from './modules/status/transports.ts';

/** What a row asks of a server. */
interface Asked {
  readonly t: TestContext;
  readonly site: TestSite;
  readonly call: Call;
  /** A GET as a visitor, without following redirects. */
  readonly get: (path: string, headers?: Readonly<Record<string, string>>) => Promise<Response>;
}

/** A sentence of the specification, and what it means at one of its edges. */
interface Row {
  readonly says: string;
  readonly edge: string;
  readonly ask: (asked: Asked) => Promise<void>;
}

const rule = 'svc1.userinterface';
const exact = (text: string): unknown => JSON.rawJSON(text);
const reasons = (problems: readonly { readonly field: string; readonly reason: string }[]) =>
  problems.map(({ field, reason }) => `${field} ${reason}`);

const derived = 'vk: When absent, the server generates one from fields in the payload.';
const unknowns =
  'Fields that were sent on insert or edit but were not valid at that moment. They are saved here.';
const resolves = 'A well-known path or token is converted to the real underlying URL.';
const varies = 'The target may vary by user, location and device.';
const invalidates = 'An invalidate entry records that a secondary process reverted edits.';
const fetches = 'content.fetch: the wildcard part of the request path substituted for the *.';
const renders = 'get_render: JSON with the render details for that origin, path, query and user.';
const events =
  'At registration a caller names an event type, delivery method, place and frequency.';

const rows: readonly Row[] = [
  {
    says: derived,
    edge: 'numbers that no double tells apart are two events',
    async ask({ call }) {
      const event = (n: string) => ({
        ...{ type: 'spec.number', occurred_at: '2026-11-29T10:00:00Z', data: { n: exact(n) } },
      });
      const first = await call('svc1.event.insert', event('9007199254740992'));
      const second = await call('svc1.event.insert', event('9007199254740993'));
      assert.notEqual(first.data.id, second.data.id);
      assert.notEqual(second.replayed, true);
    },
  },
  {
    says: derived,
    edge: 'a form and JSON with the same values are one write',
    async ask({ site, call }) {
      const body = '_v.path=/spec/form&_v.kind=content&_v.content=x&_v.rve=1.0';
      const headers = {
        ...{ apikey: site.adminKey, 'content-type': 'application/x-www-form-urlencoded' },
      };
      const url = `${site.url}/svc1/userinterface/insert`;
      const reply = await fetch(url, { method: 'POST', headers, body });
      const { data } = (await reply.json()) as { data: { id: string } };
      const v = { path: '/spec/form', kind: 'content', content: 'x', rve: 1 };
      const again = await call(`${rule}.insert`, v);
      assert.deepEqual([again.data.id, again.replayed], [data.id, true]);
    },
  },
  {
    says: derived,
    edge: 'of rows as of page rules, and the answer says that it is a repeat',
    async ask({ call }) {
      const row = { table: 'spec', name: 'same' };
      const first = await call('svc1.record.insert', row);
      const second = await call('svc1.record.insert', row);
      assert.deepEqual([second.data.id, second.replayed], [first.data.id, true]);
    },
  },
  {
    says: unknowns,
    edge: 'a section of access that does not exist yet closes the page to everybody',
    async ask({ call, get }) {
      const v = { path: '/spec/later', content: 'x', access: 'staff-later' };
      const { data } = await call(`${rule}.insert`, v);
      assert.equal(data._unknowns_.access, 'staff-later');
      assert.ok(data.problems.some(({ field }: { field: string }) => field === 'access'));
      assert.notEqual((await get('/spec/later')).status, 200);
    },
  },
  {
    says: 'content.fetch makes the server fetch the source URL, sending the given headers.',
    edge: 'fields that can never be sent as given are told by name',
    async ask({ call }) {
      const headers = { 'Content-Length': '5', 'X-Fine': 'a' };
      const enginedata = { source: 'https://a.example/*', headers };
      const v = { path: '/spec/fetched/*', kind: 'content.fetch', enginedata };
      const { data } = await call(`${rule}.insert`, v);
      assert.match(reasons(data.problems).join(), /enginedata\.headers\.Content-Length/);
    },
  },
  {
    says: 'httpresponse: HTTP status to answer with.',
    edge: 'what has no effect is told: a target with 404',
    async ask({ call }) {
      const v = { path: '/spec/no', kind: 'resolve', enginedata: { target: '/a' } };
      const { data } = await call(`${rule}.insert`, { ...v, httpresponse: 404 });
      assert.match(reasons(data.problems).join(), /httpresponse no_effect/);
    },
  },
  {
    says: resolves,
    edge: 'a target has what the wildcard stood for',
    async ask({ call, get }) {
      const enginedata = { target: '/spec/new/{splat}?from={query.q}' };
      await call(`${rule}.insert`, { path: '/spec/old/*', kind: 'resolve', enginedata });
      const location = (await get('/spec/old/a/b?q=1%262')).headers.get('location');
      assert.match(location ?? '', /\/spec\/new\/a\/b\?from=1%262$/);
    },
  },
  {
    says: resolves,
    edge: 'a key with a wildcard resolves by link.htm and get_resolve as by a visit',
    async ask({ call, get }) {
      const enginedata = { target: '/spec/is/*' };
      await call(`${rule}.insert`, { path: '/spec/was/*', kind: 'resolve', enginedata });
      const { data } = await call(`${rule}.get_resolve`, { k: '/spec/was/x' });
      assert.match(data.target, /\/spec\/is\/x$/);
      const link = await get('/svc1/userinterface.link.htm?k=/spec/was/x');
      const visit = await get('/spec/was/x');
      assert.equal(link.headers.get('location'), visit.headers.get('location'));
    },
  },
  {
    says: 'A final target for the key: HTML, a 302 redirect, or any other valid HTTP response.',
    edge: 'the header fields of the rule hold at link.htm too',
    async ask({ call, get }) {
      const v = { path: 'spec-key', kind: 'resolve', enginedata: { target: '/a' } };
      await call(`${rule}.insert`, { ...v, headers: { 'X-Spec': 'yes' } });
      const link = await get('/svc1/userinterface.link.htm?k=spec-key');
      assert.deepEqual([link.status, link.headers.get('x-spec')], [302, 'yes']);
    },
  },
  {
    says: varies,
    edge: 'each branch has fields and cookies of its own',
    async ask({ call, get }) {
      const branch = { if: { query: { a: '1' } }, target: '/one', headers: { 'X-Branch': 'one' } };
      const enginedata = { target: '/all', when: [branch] };
      await call(`${rule}.insert`, { path: '/spec/branch', kind: 'resolve', enginedata });
      assert.equal((await get('/spec/branch?a=1')).headers.get('x-branch'), 'one');
      assert.equal((await get('/spec/branch')).headers.get('x-branch'), null);
    },
  },
  {
    says: 'k: well-known key or token.',
    edge: 'a token resolves a breadcrumb for one person until it ends',
    async ask({ call, get }) {
      const when = [{ if: { user: 'ada' }, target: '/for-ada' }];
      const v = { path: 'spec-person', kind: 'resolve', enginedata: { target: '/all', when } };
      await call(`${rule}.insert`, v);
      const until = new Date(Date.now() + 3_600_000).toISOString();
      const made = await call('svc1.breadcrumb.token', { k: 'spec-person', user: 'ada', until });
      const { pathname, search } = new URL(made.data.url as string);
      assert.match((await get(pathname + search)).headers.get('location') ?? '', /for-ada$/);
      await call('svc1.breadcrumb.revoke_token', { id: made.data.id });
      assert.equal((await get(pathname + search)).status, 404);
    },
  },
  {
    says: 'get_content as a direct URL: a valid HTTP response.',
    edge: 'conditions of the request count',
    async ask({ site, call, get }) {
      await call(`${rule}.insert`, { path: '/spec/page', content: 'page' });
      const place = `/svc1/userinterface/get_content?_v.origin=${site.url}&_v.path=/spec/`;
      const address = `${place}page`;
      const etag = (await get(address)).headers.get('etag') ?? '';
      assert.equal((await get(address, { 'if-none-match': etag })).status, 304);
      assert.equal((await get(`${place}none`)).status, 404);
    },
  },
  {
    says: 'A page rule describes how a URL path (identified by an origin plus a path) is served.',
    edge: 'one rule for several origins, and for subdomains',
    async ask({ call }) {
      const origin = 'https://one.example https://*.two.example';
      await call(`${rule}.insert`, { origin, path: '/spec/origins', content: 'x' });
      for (const [asked, isThere] of [
        ['https://one.example', true],
        ['https://a.b.two.example', true],
        ['https://two.example', false],
      ] as const) {
        const { error } = await call(`${rule}.get`, { origin: asked, path: '/spec/origins' });
        assert.equal(error === undefined, isThere, asked);
      }
    },
  },
  {
    says: 'A generic page can be reached under more than one visible URL.',
    edge: 'a * in the middle of a path, and what it stood for in the reply',
    async ask({ call, site }) {
      const v = { path: '/spec/shop/*/edit', kind: 'content', engine: 'html', enginedata: {} };
      await call(`${rule}.insert`, v);
      const path = '/spec/shop/lamp/edit';
      const { data } = await call(`${rule}.get_render`, { origin: site.url, path });
      assert.equal(data.capture, 'lamp');
    },
  },
  {
    says: renders,
    edge: 'several paths in one call, each with its data or its error',
    async ask({ call, site }) {
      await call(`${rule}.insert`, { path: '/spec/part', content: 'x', engine: 'html' });
      const paths = ['/spec/part', '/spec/nothing'];
      const { data } = await call(`${rule}.get_render`, { origin: site.url, paths });
      const codes = data.pages.map((page: { error?: { code: string } }) => page.error?.code);
      assert.deepEqual(codes, [undefined, 'not_found']);
    },
  },
  {
    says: fetches,
    edge: 'names that are never passed are told',
    async ask({ call }) {
      const enginedata = { source: 'https://a.example/*', pass: ['connection'] };
      const v = { path: '/spec/passed/*', kind: 'content.fetch', enginedata };
      const { data } = await call(`${rule}.insert`, v);
      assert.match(reasons(data.problems).join(), /enginedata\.pass/);
    },
  },
  {
    says: invalidates,
    edge: 'a batch is one transaction, and is taken back as one over all families',
    async ask({ call, get }) {
      const operations = [
        { a: `${rule}.insert`, v: { path: '/spec/bulk', content: 'bulk' } },
        { a: 'svc1.record.insert', v: { table: 'spec', name: 'bulk' } },
      ];
      const done = await call('svc1.batch', { operations });
      assert.equal((await get('/spec/bulk')).status, 200);
      const { txn } = done.data;
      const { data } = await call('svc1.change.invalidate', { txn });
      await call('svc1.change.invalidate', { txn, confirm: data.digest });
      assert.equal((await get('/spec/bulk')).status, 404);
      const row = await call('svc1.record.read', { table: 'spec', name: 'bulk' });
      assert.equal(row.error?.code, 'not_found');
    },
  },
  {
    says: 'Envelope {r, data}. With qk history: data.rows is an array of history rows.',
    edge: 'a history names its author after the key is gone',
    async ask({ site, call }) {
      const key = await call('svc1.key.insert', { name: 'gone', scopes: ['design', 'read'] });
      const v = { path: '/spec/author', content: 'x' };
      const made = await site.call(`${rule}.insert`, v, { apikey: key.data.key as string });
      await call('svc1.key.revoke', { id: key.data.id });
      const { data } = await call(`${rule}.read`, { id: made.data.id }, { qk: 'history' });
      assert.equal(data.rows[0].by_name, 'gone');
    },
  },
  {
    says: "HTTP calls carry the caller's API key in a request header named apikey.",
    edge: 'a key ends at its instant',
    async ask({ site, call }) {
      const until = new Date(Date.now() + 1_500).toISOString();
      const { data } = await call('svc1.key.insert', { name: 'ends', scopes: ['read'], until });
      const status = () => site.call('svc1.server.status', {}, { apikey: data.key as string });
      assert.equal((await status()).error, undefined);
      while ((await status()).error === undefined);
      assert.match((await status()).error?.message ?? '', /ended/);
    },
  },
  {
    says: events,
    edge: 'event types of one’s own have a schema',
    async ask({ call }) {
      const shipped = (data: object) => call('svc1.event.insert', { type: 'order.shipped', data });
      assert.equal((await shipped({ order: 5 })).error, undefined);
      assert.equal((await shipped({ order: 'five' })).error?.code, 'invalid');
    },
  },
  {
    says: 'Frequency: optionally the hook batches data and executes periodically.',
    edge: 'when the next batch leaves is told',
    async ask({ call }) {
      const frequency = { mode: 'batch', every: '1h' };
      const v = { url: 'https://a.example/', event: ['spec.batched'], frequency };
      const { data } = await call('svc1.webhook.insert', v);
      await call('svc1.event.insert', { type: 'spec.batched', data: {} });
      const next = async () => (await call('svc1.webhook.read', { id: data.id })).data.next_batch;
      let at = await next();
      while (at === undefined) at = await next();
      assert.ok(Date.parse(at) > Date.now());
    },
  },
  {
    says: 'Completed: an HTTP status in 200-299, or 404, or the retry limit is exhausted.',
    edge: '410 completes nothing: it pauses the hook, which keeps its messages',
    async ask({ t, call }) {
      const receiver = await startReceiver(t);
      receiver.answer = () => 410;
      const v = { url: receiver.url, event: ['spec.gone'] };
      const hook = await call('svc1.webhook.insert', v);
      await call('svc1.event.insert', { type: 'spec.gone', data: {} });
      await receiver.until(1);
      const isPaused = async () =>
        (await call('svc1.webhook.read', { id: hook.data.id })).data.active === false;
      while (!(await isPaused()));
      receiver.answer = () => 200;
      await call('svc1.webhook.resume', { id: hook.data.id });
      const [first, second] = await receiver.until(2);
      assert.equal(second?.body.id, first?.body.id);
    },
  },
];

const table = {
  name: 'spec',
  key: 'name',
  schema: { type: 'object', properties: { name: { type: 'string' } } },
};
const shippedSchema = { type: 'object', properties: { order: { type: 'integer' } } };
const ini =
  '[event.order.shipped]\nschema = shipped.json\n[webhook]\nallow_private = 127.0.0.0/8\n';

for (const [transport, open] of Object.entries(transports)) {
  suite(`the specification at its edges, over ${transport}`, () => {
    for (const { says, edge, ask } of rows) {
      test(`${says} ${edge}`, async (t) => {
        const files = { 'shipped.json': JSON.stringify(shippedSchema) };
        const site = await startSite(t, { ini, files });
        await site.call('svc1.table.insert', table);
        const get: Asked['get'] = (path, headers = {}) =>
          fetch(site.url + path, { redirect: 'manual', headers });
        await ask({ t, site, call: await open(site), get });
      });
    }
  });
}
