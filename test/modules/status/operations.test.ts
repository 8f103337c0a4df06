import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { startSite, type Answer } from '../../harness.ts';
import { transports } from './transports.ts';

const origin = 'http://shop.example';
const page = { origin, path: '/a', kind: 'content', content: '<p>one</p>' };

const rule = 'svc1.userinterface';

for (const [transport, open] of Object.entries(transports)) {
  suite(`operations over ${transport}`, () => {
    test('a page is inserted, read, edited, and has a history', async (t) => {
      const site = await startSite(t);
      const call = await open(site);

      const inserted = await call(`${rule}.insert`, page);
      assert.equal(inserted.r, `${rule}.insert`);
      const { id, seq, unknowns } = inserted.data;
      assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7/);
      assert.deepEqual(unknowns, []);
      assert.equal(typeof inserted.vk, 'string');

      const edited = await call(`${rule}.edit`, { id, content: '<p>two</p>', lang: 'EN-gb' });
      assert.equal(edited.data.content, '<p>two</p>');
      assert.equal(edited.data.lang, 'en-GB');
      assert.ok(edited.data.seq > seq);

      const read = await call(`${rule}.read`, { id });
      assert.deepEqual(read.data, {
        ...page,
        id,
        content: '<p>two</p>',
        lang: 'en-GB',
        seq: edited.data.seq,
      });

      const history = await call(`${rule}.read`, { id }, { qk: 'history' });
      assert.deepEqual(
        history.data.rows.map(({ action, data }: { action: string; data: object }) => [
          action,
          data,
        ]),
        [
          ['edit', { id, content: '<p>two</p>', lang: 'en-GB' }],
          ['insert', { id, ...page }],
        ],
      );
      const [newest] = history.data.rows;
      assert.match(newest.dtu_txn, /^\d{4}-.*Z$/);
      assert.match(newest.dtu_stored, /^\d{4}-.*Z$/);
      const older = await call(
        `${rule}.read`,
        { id, before: newest.seq, limit: 5 },
        { qk: 'history' },
      );
      assert.deepEqual(
        older.data.rows.map(({ action }: { action: string }) => action),
        ['insert'],
      );
    });

    test('null removes a field; an invalid value waits, is named, and becomes a field once it is valid', async (t) => {
      const call = await open(await startSite(t));
      const { data: first } = await call(`${rule}.insert`, {
        ...page,
        httpresponse: 'soon',
        colour: 'blue',
        enginedata: { source: 'http://x.example/*' },
        methods: null,
      });
      assert.deepEqual(first.unknowns.sort(), ['colour', 'httpresponse']);
      assert.deepEqual(first._unknowns_, { colour: 'blue', httpresponse: 'soon' });

      const { data: fetched } = await call(`${rule}.edit`, { id: first.id, kind: 'content.fetch' });
      assert.equal(fetched.content, undefined);
      assert.equal(fetched._unknowns_.content, page.content);

      const { data: back } = await call(`${rule}.edit`, {
        id: first.id,
        kind: 'content',
        colour: null,
      });
      assert.equal(back.content, page.content);
      assert.deepEqual(back._unknowns_, { httpresponse: 'soon' });

      const { data: sentBack } = await call(`${rule}.edit`, { ...back, httpresponse: 201 });
      assert.equal(sentBack.httpresponse, 201);
      assert.equal(sentBack._unknowns_, undefined);
      assert.deepEqual(sentBack.unknowns, []);
    });

    test('a history before its first row is empty; without a record it is not found', async (t) => {
      const call = await open(await startSite(t));
      const { id, seq } = (await call(`${rule}.insert`, page)).data;
      const rows = (v: object) => call(`${rule}.read`, { before: seq, ...v }, { qk: 'history' });
      assert.deepEqual((await rows({ id })).data, { rows: [], next: null });
      assert.equal((await rows({ id: 'x' })).error?.code, 'not_found');
    });

    test('a history of large pages comes in parts', async (t) => {
      const call = await open(await startSite(t));
      const { id } = (await call(`${rule}.insert`, page)).data;
      const texts = ['a', 'b'].map((text) => text.repeat(5 << 20));
      for (const content of texts) await call(`${rule}.edit`, { id, content });
      const seen: string[] = [];
      const counts: number[] = [];
      let before: number | null = null;
      do {
        const { data }: Answer = await call(`${rule}.read`, { id, before }, { qk: 'history' });
        counts.push(data.rows.length);
        for (const row of data.rows) seen.push(row.data.content);
        before = data.next;
      } while (before !== null);
      assert.deepEqual(counts, [2, 1]);
      assert.deepEqual(seen, [...texts.toReversed(), page.content]);
    });

    test('all waiting values are named, also those inside a sent _unknowns_', async (t) => {
      const call = await open(await startSite(t));
      const told = async (_unknowns_: unknown) =>
        (await call(`${rule}.insert`, { ...page, _unknowns_ })).data.unknowns;
      assert.deepEqual(await told({ a: 1, _unknowns_: { b: 2 } }), ['b', 'a']);
      assert.deepEqual(await told('all of them'), ['_unknowns_']);
    });

    test('null means that an optional field is absent', async (t) => {
      const call = await open(await startSite(t));
      const { data } = await call(`${rule}.insert`, page);
      const { id } = data;
      const nothing = { origin: null, path: null, kind: null, table: null, text: null };
      for (const [name, v] of [
        ['list', { ...nothing, engine: null, after: null, limit: null, as_of: null }],
        ['edit', { id, if_seq: null, rve: 1 }],
        ['read', { id, as_of: null, limit: null, before: null }],
        ['invalidate', { id, txn: null, by: null, from: null, until: null, confirm: null }],
      ] as const) {
        const present = Object.entries(v).filter(([, value]) => value !== null);
        const { error, data: answer } = await call(`${rule}.${name}`, v);
        assert.equal(error, undefined, name);
        const without = await call(`${rule}.${name}`, Object.fromEntries(present));
        assert.deepEqual(without.data, answer, name);
      }
    });

    test('constructor, __proto__ and the like are ordinary field names', async (t) => {
      const site = await startSite(t);
      const call = await open(site);
      const v = {
        path: '/z',
        content: 'x',
        hasOwnProperty: null,
        toString: 1,
        engine: 'constructor',
      };
      const { data } = await call(`${rule}.insert`, v);
      assert.deepEqual(data.unknowns.toSorted(), ['engine', 'toString']);
      assert.deepEqual(data._unknowns_, { engine: 'constructor', toString: 1 });
    });

    test('the same vk gives the first answer again, and is refused for another request', async (t) => {
      const call = await open(await startSite(t));
      const first = await call(`${rule}.insert`, page, { vk: 'upload-1' });
      await call(`${rule}.edit`, { id: first.data.id, content: 'later' });
      const again = await call(`${rule}.insert`, page, { vk: 'upload-1' });
      assert.equal(again.replayed, true);
      assert.deepEqual(again.data, first.data);
      assert.equal(again.vk, 'upload-1');
      const other = await call(`${rule}.insert`, { ...page, path: '/b' }, { vk: 'upload-1' });
      assert.equal(other.error?.code, 'conflict');
      assert.equal(other.error.field, 'vk');

      const edit = { id: first.data.id, content: 'x' };
      const edited = await call(`${rule}.edit`, edit, { vk: 'edit-1' });
      await call(`${rule}.edit`, { ...edit, content: 'y' });
      const repeated = await call(`${rule}.edit`, edit, { vk: 'edit-1' });
      assert.equal(repeated.replayed, true);
      assert.equal(repeated.data.seq, edited.data.seq);
      const { data: now } = await call(`${rule}.read`, { id: first.data.id });
      assert.equal(now.content, 'y');
    });

    test('an exact repeat without a vk is not a second record', async (t) => {
      const call = await open(await startSite(t));
      const first = await call(`${rule}.insert`, page);
      const { path, kind, content } = page;
      const again = await call(`${rule}.insert`, { content, kind, path, origin });
      assert.equal(again.data.id, first.data.id);
      assert.equal(again.replayed, true);
    });

    test('an edit of a changed record is refused', async (t) => {
      const call = await open(await startSite(t));
      const { data } = await call(`${rule}.insert`, page);
      const { id, seq } = data;
      assert.equal((await call(`${rule}.edit`, { id, if_seq: seq, rve: 1 })).data.rve, 1);
      const late = await call(`${rule}.edit`, { id, if_seq: seq, rve: 2 });
      assert.equal(late.error?.code, 'precondition_failed');
      assert.equal((await call(`${rule}.read`, { id })).data.rve, 1);
    });

    test('an empty if_seq is refused', async (t) => {
      const call = await open(await startSite(t));
      const { data } = await call(`${rule}.insert`, page);
      const refused = await call(`${rule}.edit`, { id: data.id, if_seq: '', rve: 2 });
      assert.equal(refused.error?.code, 'invalid');
      assert.equal(refused.error.field, 'if_seq');
      assert.equal((await call(`${rule}.read`, { id: data.id })).data.seq, data.seq);
      const hook = await call('svc1.webhook.insert', { event: '*', url: 'https://example.com/' });
      for (const name of ['edit', 'pause', 'resume']) {
        const { error } = await call(`svc1.webhook.${name}`, { id: hook.data.id, if_seq: '' });
        assert.equal(error?.field, 'if_seq', name);
      }
    });

    test('keys are added, listed without their secret, and revoked', async (t) => {
      const site = await startSite(t);
      const call = await open(site);
      const made = await call('svc1.key.insert', { name: 'ci', scopes: ['read'] });
      assert.match(made.data.key, /^wmk_[A-Za-z0-9_-]{43}$/);
      const use = () => site.call('svc1.server.status', {}, { apikey: made.data.key });
      assert.equal((await use()).data.seq > 0, true);
      const listed = await call('svc1.key.list', {});
      assert.deepEqual(
        listed.data.rows.map(({ name, scopes }: { name: string; scopes: string[] }) => [
          name,
          scopes,
        ]),
        [
          ['admin', ['admin']],
          ['ci', ['read']],
        ],
      );
      assert.ok(!JSON.stringify(listed).includes(made.data.key));
      await call('svc1.key.revoke', { id: made.data.id });
      assert.equal((await use()).error?.code, 'unauthenticated');
      const gone = await call('svc1.key.revoke', { id: made.data.id });
      assert.equal(gone.error?.code, 'not_found');
    });

    test('get and get_render show the data of a page, and no secret', async (t) => {
      const call = await open(await startSite(t));
      await call(`${rule}.insert`, {
        origin: '*',
        path: '/lamps/*',
        kind: 'content',
        engine: 'html',
        enginedata: { html: '<h1>Lamp</h1>', headers: { a: 'secret' }, extra: { n: 1 } },
        enginecomments: 'secret',
        nonsense: 'secret',
      });
      const place = {
        origin: 'https://SHOP.example:443',
        path: '/lamps/t%C3%A9rn',
        query: 'a=1&a=2&b=3',
      };
      const { data } = await call(`${rule}.get_render`, place);
      assert.equal(data.origin, 'https://shop.example');
      assert.equal(data.path, '/lamps/térn');
      assert.equal(data.capture, 'térn');
      assert.deepEqual(data.query, { a: ['1', '2'], b: '3' });
      assert.equal(data.engine, 'html');
      assert.deepEqual(data.enginedata, { html: '<h1>Lamp</h1>', extra: { n: 1 } });
      assert.match(data.enginereference, /\/svc1\/engines\/html$/);
      const { data: got } = await call(`${rule}.get`, place);
      assert.equal(got.path, '/lamps/*');
      assert.ok(!JSON.stringify([data, got]).includes('secret'));
      await call(`${rule}.insert`, {
        path: '/far/*',
        kind: 'content.fetch',
        enginedata: { source: 'http://secret.example/*', headers: { k: 'secret' } },
      });
      const far = await call(`${rule}.get`, { origin, path: '/far/x' });
      assert.equal(far.data.kind, 'content.fetch');
      assert.ok(!JSON.stringify(far).includes('secret'));
      const none = await call(`${rule}.get_render`, { origin, path: '/nowhere' });
      assert.equal(none.error?.code, 'not_found');
    });

    test('get_resolve follows keys to their target and refuses a circle', async (t) => {
      const call = await open(await startSite(t));
      const crumb = (path: string, enginedata: object) =>
        call(`${rule}.insert`, { path, kind: 'resolve', enginedata });
      await crumb('spring', { target: '/offers/?x=1', forward_query: true });
      await crumb('promo', { target: 'key:spring' });
      await crumb('ping', { target: 'key:pong' });
      await crumb('pong', { target: 'key:ping' });
      const { data } = await call(`${rule}.get_resolve`, { k: 'promo', query: 'utm=a' });
      assert.deepEqual(
        [data.status, data.target, data.matched],
        [302, '/offers/?x=1&utm=a', 'default'],
      );
      assert.equal((await call(`${rule}.get_resolve`, { k: 'ping' })).error?.code, 'unprocessable');
      assert.equal((await call(`${rule}.get_resolve`, { k: 'none' })).error?.code, 'not_found');
    });

    const refusals: readonly (readonly [string, string, object, string, string | undefined])[] = [
      ['an unknown operation', 'svc1.userinterface.fly', {}, 'not_found', undefined],
      ['no path', `${rule}.insert`, { kind: 'content', content: '' }, 'invalid', 'path'],
      [
        'a path with dot segments',
        `${rule}.insert`,
        { ...page, path: '/a/../b' },
        'invalid',
        'path',
      ],
      ['a * in the middle', `${rule}.insert`, { ...page, path: '/a*b' }, 'invalid', 'path'],
      ['a kind there is not', `${rule}.insert`, { path: '/a', kind: 'blog' }, 'invalid', 'kind'],
      ['no id', `${rule}.edit`, { content: 'x' }, 'invalid', 'id'],
      ['an id there is not', `${rule}.edit`, { id: 'x', content: 'x' }, 'not_found', 'id'],
      ['reading an id there is not', `${rule}.read`, { id: 'x' }, 'not_found', 'id'],
      ['a limit that is no number', `${rule}.read`, { id: 'x', limit: 'all' }, 'invalid', 'limit'],
      ['a question about then', `${rule}.read`, { id: 'x', as_of: 3 }, 'invalid', 'as_of'],
      ['an origin that is none', `${rule}.get`, { origin: 'shop', path: '/' }, 'invalid', 'origin'],
      ['a page path that is none', `${rule}.get`, { origin, path: 'a' }, 'invalid', 'path'],
      ['an empty breadcrumb key', `${rule}.get_resolve`, { k: '' }, 'invalid', 'k'],
      [
        'a scope there is not',
        'svc1.key.insert',
        { name: 'a', scopes: ['root'] },
        'invalid',
        'scopes.0',
      ],
      ['a key without scopes', 'svc1.key.insert', { name: 'a', scopes: [] }, 'invalid', 'scopes'],
      [
        'too much enginedata',
        `${rule}.insert`,
        { ...page, engine: 'html', enginedata: { html: 'x'.repeat(1 << 20) } },
        'too_large',
        'enginedata',
      ],
      ['too deep a value', `${rule}.insert`, { ...page, deep: deepValue(100) }, 'too_large', 'v'],
    ];
    test('failures name the field and say what to do', async (t) => {
      const site = await startSite(t);
      const call = await open(site);
      const before = await call('svc1.server.status', {});
      for (const [title, name, v, code, field] of refusals) {
        const { error }: Answer = await call(name, v);
        assert.equal(error?.code, code, title);
        assert.equal(error.field, field, title);
        assert.ok(error.message.length > 10, title);
        assert.ok(error.id, title);
      }
      const after = await call('svc1.server.status', {});
      assert.equal(after.data.seq, before.data.seq, 'nothing was written');
    });
  });
}

test('each operation needs its scope', async (t) => {
  const site = await startSite(t);
  const key = async (...scopes: string[]) =>
    (await site.call('svc1.key.insert', { name: scopes.join('+'), scopes })).data.key as string;
  const readKey = await key('read');
  const designKey = await key('design');
  const table: readonly (readonly [string, object, string | undefined, string | undefined])[] = [
    [`${rule}.insert`, page, undefined, 'unauthenticated'],
    [`${rule}.insert`, page, readKey, 'forbidden'],
    [`${rule}.insert`, page, designKey, undefined],
    [`${rule}.insert`, page, 'wmk_wrong', 'unauthenticated'],
    [`${rule}.read`, { id: 'x' }, undefined, 'unauthenticated'],
    [`${rule}.read`, { id: 'x' }, designKey, 'forbidden'],
    [`${rule}.get`, { origin, path: '/a' }, undefined, undefined],
    [`${rule}.get_render`, { origin, path: '/a' }, undefined, undefined],
    ['svc1.key.list', {}, readKey, 'forbidden'],
    ['svc1.key.insert', { name: 'x', scopes: ['admin'] }, designKey, 'forbidden'],
    ['svc1.server.status', {}, undefined, 'unauthenticated'],
    ['svc1.server.status', {}, readKey, undefined],
  ];
  for (const [name, v, apikey, code] of table) {
    const { error } = await site.call(name, v, { apikey });
    assert.equal(error?.code, code, `${name} with ${apikey ?? 'no key'}`);
  }
});

test('without anonymous scopes, a caller without a key sees nothing', async (t) => {
  const site = await startSite(t, { ini: '[auth]\nanonymous =\n' });
  const { error, status } = await site.call(
    `${rule}.get`,
    { origin, path: '/a' },
    { apikey: undefined },
  );
  assert.equal(error?.code, 'unauthenticated');
  assert.equal(status, 401);
});

test('too many wrong keys from one address are answered 429; the right one always passes', async (t) => {
  const site = await startSite(t);
  const status = (apikey: string) => site.call('svc1.server.status', {}, { apikey });
  for (let count = 0; count < 20; count += 1) assert.equal((await status('wmk_x')).status, 401);
  const limited = await status('wmk_x');
  assert.equal(limited.status, 429);
  assert.equal(limited.error?.code, 'rate_limited');
  assert.equal((await status(site.adminKey)).status, 200);
  assert.match(site.logged(), /wrong_keys/);
});

function deepValue(levels: number): object {
  let value: object = {};
  for (let level = 0; level < levels; level += 1) value = { value };
  return value;
}

test('no page answers at addresses of Waymark itself', async (t) => {
  const site = await startSite(t, {
    ini: '[disk.site]\nroot = site\n',
    files: { 'site/svc1/health': 'a file' },
    rules: [{ path: '/*', kind: 'content', content: 'a page' }],
  });
  const socket = await site.socket(site.adminKey);
  for (const name of ['get', 'get_render', 'get_content']) {
    for (const path of ['/svc1', '/svc1/health', '/%73vc1/none?a=1']) {
      const { error } = await socket.call(`${rule}.${name}`, { origin: site.url, path });
      assert.deepEqual([error?.code, error?.field], ['not_found', 'path'], `${name} ${path}`);
    }
    const { data } = await socket.call(`${rule}.${name}`, { origin: site.url, path: '/svc10' });
    assert.ok(JSON.stringify(data).includes(name === 'get_render' ? '"id"' : 'a page'));
  }
});
