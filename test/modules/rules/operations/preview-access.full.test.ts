import assert from 'node:assert/strict';
import { suite, test, type TestContext } from 'node:test';
import { operations } from '../../../../src/modules.ts';
import { startSite, type TestSite } from '../../../harness.ts';

const text = { type: 'string' };

/** Tables by name, each with one row per user; `title` and `what` are the texts to look for. */
const tables = [
  {
    name: 'mine',
    schema: { type: 'object', properties: { number: text, buyer: text, what: text } },
    ...{ key: 'number', title: 'what', owner: 'buyer', read: ['user'] },
  },
  {
    name: 'scoped',
    schema: { type: 'object', properties: { what: text } },
  },
  {
    name: 'open',
    schema: {
      type: 'object',
      properties: { what: text, order: { type: 'string', 'x-table': 'mine' } },
    },
    read: ['anonymous'],
  },
];

const rows = [
  { table: 'mine', number: 'a', buyer: 'ada', what: 'secret-mine-ada' },
  { table: 'mine', number: 'b', buyer: 'bob', what: 'secret-mine-bob' },
  { table: 'scoped', what: 'secret-scoped' },
  { table: 'open', what: 'public-open', order: 'a' },
];

const template =
  '{{ user.name }}{% for one in rows.all.rows %}{{ one.what }}{% endfor %}' +
  '{% for one in rows.all %}<i>{{ one.what }} {{ one._titles_.order }}</i>{% endfor %}';

function pageOf(table: string, before = ''): object {
  const enginedata = { render: 'server', template: before + template, rows: { all: { table } } };
  return { path: `/${table}`, kind: 'content', engine: 'template', enginedata };
}

async function start(t: TestContext): Promise<TestSite> {
  const site = await startSite(t, {
    server: 'trust_proxy = 127.0.0.0/8',
    ini: '[auth]\nuser_header = X-User\n',
    rules: [
      ...tables.map(({ name }) => pageOf(name)),
      { path: '/form', kind: 'insert-record', table: 'mine', engine: 'form' },
      { path: '/key', kind: 'resolve', enginedata: { target: '/mine' } },
    ],
  });
  const v = [
    ...tables.map((one) => ['table', one]),
    ...rows.map((one) => ['record', one]),
  ] as const;
  for (const [family, one] of v) {
    const { error } = await site.call(`svc1.${family as string}.insert`, one as object);
    assert.equal(error, undefined, JSON.stringify(error));
  }
  // A draft of all pages, so that their answers differ.
  await site.call('svc1.draft.insert', { name: 'other' });
  for (const row of (await site.call('svc1.userinterface.list', { kind: 'content' })).data.rows) {
    const v = { id: row.id, ...pageOf(row.path.slice(1), 'draft ') };
    await site.call('svc1.userinterface.edit', v, { draft: 'other' });
  }
  return site;
}

/** Operations that name a user, and show no page to a visitor whom they describe. */
const others = ['svc1.login.list', 'svc1.breadcrumb.token', 'svc1.breadcrumb.tokens'];

/** The operations whose input can describe a visitor. */
const previewing = operations.filter(
  ({ input, name }) =>
    !others.includes(name) &&
    Object.hasOwn((input as { readonly properties?: object }).properties ?? {}, 'user'),
);

/** The inputs with which an operation shows each page. */
function inputsOf({ input, name }: (typeof previewing)[number], origin: string): readonly object[] {
  const { required = [] } = input as { readonly required?: readonly string[] };
  if (name === 'svc1.draft.compare') return [{ draft: 'other', origin }];
  const known = ['origin', 'path', 'k'];
  assert.ok(
    required.every((one) => known.includes(one)),
    `${name}: say what this test has to send`,
  );
  if (required.includes('k')) return [{ origin, k: '/key' }];
  return ['/mine', '/scoped', '/open', '/form', '/key'].map((path) => ({ origin, path }));
}

const described = [
  ...[{ user: 'ada' }, { user: 'bob' }, { user: 'nobody' }, { user: 'ada', role: ['staff'] }],
  ...[{ country: 'DE' }, { address: '192.0.2.1' }],
];

/** The texts of rows in an answer. */
function found(answer: unknown): readonly string[] {
  const all = JSON.stringify(answer).match(/(?:secret|public)-[a-z-]+/g) ?? [];
  return [...new Set(all)].sort();
}

suite('a described visitor', () => {
  test('is known to the operations that show pages', () => {
    const names = previewing.map(({ name }) => name.replace('svc1.userinterface.', ''));
    assert.deepEqual(names.sort(), [
      ...['explain', 'get_content', 'get_render', 'get_resolve', 'svc1.draft.compare'],
    ]);
  });

  test('never gives a key rows that it cannot read by itself', async (t) => {
    const site = await start(t);
    const seq = String((await site.call('svc1.server.status', {})).data.seq);
    const seen = new Map<string, Set<string>>();
    for (const scopes of [
      ...[['render'], ['read'], ['read', 'record.read:open'], ['read', 'record.read:scoped']],
      ...[
        ['read', 'record.read:mine'],
        ['read', 'record.read'],
        ['read', 'record.write'],
      ],
    ]) {
      const key = await site.call('svc1.key.insert', { name: scopes.join(), scopes });
      const socket = await site.socket((key.data as { key: string }).key);
      const own = new Set<string>();
      for (const { name } of tables) {
        for (const one of found(await socket.call('svc1.record.list', { table: name })))
          own.add(one);
      }
      const shown = new Set<string>();
      for (const operation of previewing) {
        for (const input of inputsOf(operation, site.url)) {
          for (const visitor of described) {
            for (const then of [{}, { as_of: seq }]) {
              const v = { ...input, ...visitor, ...then };
              const answer = await socket.call(operation.name, v);
              const more = found(answer).filter((one) => !own.has(one));
              assert.deepEqual(more, [], `${scopes.join()} ${operation.name} ${JSON.stringify(v)}`);
              found(answer).forEach((one) => shown.add(one));
            }
          }
        }
      }
      seen.set(scopes.join(), shown);
    }
    // The test would see rows: a key shows in a preview what it may read.
    assert.deepEqual([...(seen.get('read,record.read') ?? [])].sort(), [
      ...['public-open', 'secret-mine-ada', 'secret-mine-bob', 'secret-scoped'],
    ]);
    assert.deepEqual([...(seen.get('read') ?? [])], ['public-open']);
    assert.deepEqual([...(seen.get('render') ?? [])], []);
  });

  test('says which scope is missing, the same for a table that does not exist', async (t) => {
    const site = await start(t);
    await site.call('svc1.userinterface.insert', pageOf('none'));
    const { data } = await site.call('svc1.key.insert', { name: 'reader', scopes: ['read'] });
    const socket = await site.socket((data as { key: string }).key);
    for (const table of ['mine', 'scoped', 'none']) {
      const v = { origin: site.url, path: `/${table}`, user: 'ada' };
      const { error } = await socket.call('svc1.userinterface.get_content', v);
      assert.equal(error?.code, 'forbidden');
      assert.equal(
        error.message,
        `This page shows rows of ${table}: a preview also needs the scope record.read:${table}.`,
      );
    }
  });

  test('shares no rendered page with real visitors', async (t) => {
    const site = await start(t);
    const visit = async (user?: string) => {
      const headers = user === undefined ? {} : { 'x-user': user };
      return found(await (await fetch(`${site.url}/mine`, { headers })).text());
    };
    const socket = await site.socket(site.adminKey);
    const v = { origin: site.url, path: '/mine', user: 'ada' };
    for (let turn = 0; turn < 2; turn += 1) {
      assert.deepEqual(await visit('ada'), ['secret-mine-ada']);
      const previewed = await socket.call('svc1.userinterface.get_content', v);
      assert.deepEqual(found(previewed), ['secret-mine-ada', 'secret-mine-bob']);
      assert.match((previewed.data as { content: string }).content, /ada/);
      assert.deepEqual(await visit('ada'), ['secret-mine-ada']);
      assert.deepEqual(await visit('bob'), ['secret-mine-bob']);
      assert.deepEqual(await visit(), []);
    }
  });
});
