import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { suite, test, type TestContext } from 'node:test';
import { startSite, type TestSite } from '../../harness.ts';
import { readConfig } from '../../ini.ts';

const products = {
  name: 'products',
  schema: {
    type: 'object',
    required: ['sku'],
    properties: {
      sku: { type: 'string' },
      price: { type: 'number' },
      shop: { type: 'string', 'x-table': 'shops' },
      cost: { type: 'number', writeOnly: true },
    },
  },
  key: 'sku',
  index: ['price', 'shop'],
  read: ['anonymous'],
};
const shops = {
  name: 'shops',
  schema: { type: 'object', properties: { code: { type: 'string' }, name: { type: 'string' } } },
  key: 'code',
  title: 'name',
  read: ['anonymous'],
};
const orders = {
  name: 'orders',
  schema: { type: 'object', properties: { buyer: { type: 'string' }, what: { type: 'string' } } },
  owner: 'buyer',
  read: ['user'],
};
const secrets = {
  name: 'secrets',
  schema: { type: 'object', properties: { a: { type: 'string' } } },
};

function page(path: string, template: string, rows: object): object {
  const enginedata = { render: 'server', template, rows };
  return { path, kind: 'content', engine: 'template', enginedata };
}

const list =
  '{% for one in rows.all %}<i>{{ one.sku }}{{ one.what }}{{ one.cost }}</i>{% endfor %}';

async function shop(t: TestContext): Promise<TestSite> {
  const site = await startSite(t, {
    server: 'trust_proxy = 127.0.0.0/8',
    ini: '[auth]\nuser_header = X-User\n',
    rules: [
      page('/cheap', list, {
        all: { table: 'products', where: { price: { '<': 10 } }, sort: 'price' },
      }),
      page('/in/*', list, { all: { table: 'products', where: { shop: '{{ capture }}' } } }),
      page(
        '/one/*',
        '<i>{{ rows.one.sku | default: "none" }}</i><b>{{ rows.one._titles_.shop }}</b>',
        {
          one: { table: 'products', sku: '{{ capture }}' },
        },
      ),
      page('/mine', list, { all: { table: 'orders' } }),
      page('/secret', list, { all: { table: 'secrets' } }),
      page('/unindexed', list, { all: { table: 'products', where: { cost: 1 } } }),
    ],
  });
  for (const table of [shops, products, orders, secrets]) {
    const { error } = await site.call('svc1.table.insert', table);
    assert.equal(error, undefined, JSON.stringify(error));
  }
  const rows = [
    { table: 'shops', code: 'harbour', name: 'The harbour' },
    { table: 'products', sku: 'tern', price: 9, shop: 'harbour', cost: 7_700_077 },
    { table: 'products', sku: 'dunlin', price: 5, cost: 7_700_077 },
    { table: 'products', sku: 'heron', price: 50, shop: 'harbour' },
    { table: 'orders', buyer: 'ada', what: 'of ada' },
    { table: 'orders', buyer: 'bob', what: 'of bob' },
    { table: 'secrets', a: 'hidden' },
  ];
  for (const row of rows) {
    const { error } = await site.call('svc1.record.insert', row);
    assert.equal(error, undefined, JSON.stringify(error));
  }
  return site;
}

async function get(site: TestSite, path: string, user?: string) {
  const headers = { 'accept-encoding': 'identity', ...(user !== undefined && { 'x-user': user }) };
  const reply = await fetch(site.url + path, { headers });
  const text = await reply.text();
  const items = [...text.matchAll(/<i>(.*?)<\/i>/g)].map(([, item = '']) => item);
  return { status: reply.status, headers: reply.headers, items, text };
}

suite('a page that the server renders with rows', () => {
  test('shows lists by index and single rows by key, without writeOnly fields', async (t) => {
    const site = await shop(t);
    assert.deepEqual((await get(site, '/cheap')).items, ['dunlin', 'tern']);
    assert.deepEqual((await get(site, '/in/harbour')).items, ['tern', 'heron']);
    assert.deepEqual((await get(site, '/in/none')).items, []);
    const one = await get(site, '/one/tern');
    assert.deepEqual(one.items, ['tern']);
    assert.match(one.text, /<b>The harbour<\/b>/);
    assert.deepEqual((await get(site, '/one/puffin')).items, ['none']);
    // The page has its port, so the number is longer than that of any port.
    assert.doesNotMatch(one.text, /7700077/);
  });

  test('changes with its rows, and with the titles that they refer to', async (t) => {
    const site = await shop(t);
    const before = await get(site, '/cheap');
    const tag = (one: Awaited<ReturnType<typeof get>>) => one.headers.get('etag');
    // A row that the page does not show, and a page rule.
    await site.call('svc1.record.edit', { table: 'products', sku: 'heron', price: 60 });
    await site.call('svc1.userinterface.insert', { path: '/x', kind: 'content', content: 'x' });
    assert.equal(tag(await get(site, '/cheap')), tag(before));
    await site.call('svc1.record.edit', { table: 'products', sku: 'heron', price: 1 });
    assert.deepEqual((await get(site, '/cheap')).items, ['heron', 'dunlin', 'tern']);
    assert.deepEqual((await get(site, '/one/tern')).items, ['tern']);
    await site.call('svc1.record.edit', { table: 'shops', code: 'harbour', name: 'The quay' });
    assert.match((await get(site, '/one/tern')).text, /<b>The quay<\/b>/);
    const { data } = await site.call('svc1.record.invalidate', { table: 'products', sku: 'tern' });
    const confirm = (data as { digest: string }).digest;
    await site.call('svc1.record.invalidate', { table: 'products', sku: 'tern', confirm });
    assert.deepEqual((await get(site, '/one/tern')).items, ['none']);
  });

  test('is private where each user has rows of their own', async (t) => {
    const site = await shop(t);
    for (const user of ['ada', 'bob', 'ada']) {
      const { items, headers } = await get(site, '/mine', user);
      assert.deepEqual(items, [`of ${user}`]);
      assert.equal(headers.get('cache-control'), 'private, no-cache');
    }
    assert.equal((await get(site, '/cheap', 'ada')).headers.get('cache-control'), 'no-cache');
    // There are no rows without a user, or of a table that no caller may read.
    for (const path of ['/mine', '/secret']) {
      const { status, items } = await get(site, path);
      assert.deepEqual([status, items], [200, []], path);
    }
    assert.equal((await get(site, '/unindexed')).status, 500);
    assert.match(site.logged(), /Its rows cannot be read/);
  });
});

test('a page as of a moment shows its rows as they were, to who may read the past', async (t) => {
  const site = await shop(t);
  const { data: now } = await site.call('svc1.server.status', {});
  const { data: listed } = await site.call('svc1.table.list', { name: 'products' });
  const [table] = listed.rows as [{ id: string }];
  await site.call('svc1.record.edit', { table: 'products', sku: 'heron', price: 1 });
  await site.call('svc1.record.edit', { table: 'products', sku: 'dunlin', sku_2: 1, price: null });
  await site.call('svc1.record.edit', { table: 'shops', code: 'harbour', name: 'The quay' });
  const dry = await site.call('svc1.record.invalidate', { table: 'products', sku: 'tern' });
  const confirm = (dry.data as { digest: string }).digest;
  await site.call('svc1.record.invalidate', { table: 'products', sku: 'tern', confirm });
  const then = (path: string, more: object = {}) =>
    site.socket(site.adminKey).then((socket) =>
      socket.call('svc1.userinterface.get_content', {
        ...{ origin: site.url, path, as_of: String(now.seq), ...more },
      }),
    );
  const items = async (path: string): Promise<readonly string[]> => {
    const { data, error } = await then(path);
    assert.equal(error, undefined, JSON.stringify(error));
    return [...(data.content as string).matchAll(/<([ib])>(.*?)<\/\1>/g)].map(
      ([, , one]) => one ?? '',
    );
  };
  assert.deepEqual(await items('/cheap'), ['dunlin', 'tern']);
  assert.deepEqual((await get(site, '/cheap')).items, ['heron']);
  assert.deepEqual(await items('/in/harbour'), ['tern', 'heron']);
  assert.deepEqual(await items('/one/tern'), ['tern', 'The harbour']);
  // The fields and indexes are those of then, too; what is hidden now stays hidden.
  const { price: _price, ...others } = products.schema.properties;
  const sum = { type: 'number', 'x-renamed-from': 'price', writeOnly: true };
  const schema = { ...products.schema, properties: { ...others, sum } };
  const changed = { id: table.id, index: [], schema };
  const done = await site.call('svc1.table.edit', changed);
  assert.equal(done.error, undefined, JSON.stringify(done));
  assert.equal(done.data.rows_pending, true);
  assert.deepEqual(await items('/cheap'), ['dunlin', 'tern']);

  for (const [path, scopes, code] of [
    ['/cheap', ['read'], 'forbidden'],
    ['/cheap', ['read', 'record.read:shops'], 'forbidden'],
    ['/cheap', ['read', 'record.read:products'], undefined],
    ['/mine', ['read', 'record.read'], 'unprocessable'],
    ['/secret', ['read', 'record.read'], 'unprocessable'],
  ] as const) {
    const { data } = await site.call('svc1.key.insert', { name: path, scopes });
    const socket = await site.socket((data as { key: string }).key);
    const v = { origin: site.url, path, as_of: String(now.seq) };
    const answer = await socket.call('svc1.userinterface.get_content', v);
    assert.equal(answer.error?.code, code, `${path} ${scopes.join()} ${JSON.stringify(answer)}`);
  }
  // Titles are rows of another table.
  const { data: key } = await site.call('svc1.key.insert', {
    ...{ name: 'products', scopes: ['read', 'record.read:products'] },
  });
  const socket = await site.socket((key as { key: string }).key);
  const v = { origin: site.url, path: '/one/tern', as_of: String(now.seq) };
  const { data: one } = await socket.call('svc1.userinterface.get_content', v);
  assert.match(one.content, /<i>tern<\/i><b><\/b>/);
});

test('a page shows no rows any more once a reload takes the access to them', async (t) => {
  const site = await shop(t);
  const grant = async (anonymous: string) => {
    const ini = await readFile(site.iniFile, 'utf8');
    const others = ini.replace(/^anonymous = .*\n/m, '');
    await writeFile(site.iniFile, others.replace('[auth]', `[auth]\nanonymous = ${anonymous}`));
    site.waymark.reload(await readConfig({ file: site.iniFile, env: {}, cores: 2, hostName: '' }));
  };
  await grant('render, record.read');
  assert.deepEqual((await get(site, '/secret')).items, ['']);
  await grant('render');
  assert.deepEqual((await get(site, '/secret')).items, []);
});

test('meta of a page rule follows the schema of its table', async (t) => {
  const site = await startSite(t);
  const made = await site.call('svc1.table.insert', shops);
  await site.call('svc1.userinterface.insert', {
    path: '/new',
    kind: 'insert-record',
    table: 'shops',
  });
  const meta = async () => {
    const place = { origin: site.url, path: '/new' };
    const { data } = await site.call('svc1.userinterface.get_render', place);
    return Object.keys((data as { meta: { properties: object } }).meta.properties);
  };
  assert.deepEqual(await meta(), ['code', 'name']);
  const { id } = made.data as { id: string };
  const schema = {
    type: 'object',
    properties: { ...shops.schema.properties, street: { type: 'string' } },
  };
  const { error } = await site.call('svc1.table.edit', { id, schema });
  assert.equal(error, undefined, JSON.stringify(error));
  assert.deepEqual(await meta(), ['code', 'name', 'street']);
});
