import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { startSite, type TestSite } from '../harness.ts';
import { assertOpenToAll } from './axe.ts';
import { assertReadable, oneBrowser, sizes, visit, visitGeneric, type Tab } from './browser.ts';

const openTab = oneBrowser();

const shops = {
  name: 'shops',
  schema: {
    type: 'object',
    properties: { code: { type: 'string' }, name: { type: 'string' } },
  },
  key: 'code',
  title: 'name',
  read: ['anonymous'],
};
const lamps = {
  name: 'lamps',
  schema: {
    type: 'object',
    title: 'Lamp',
    required: ['sku', 'name'],
    properties: {
      sku: { type: 'string', title: 'Number', pattern: '^[A-Z]{3}-[0-9]$' },
      name: { type: 'string', title: 'Name', minLength: 2 },
      price: { type: 'number', title: 'Price', minimum: 0 },
      shop: { type: 'string', title: 'Shop', 'x-table': 'shops' },
      note: { type: 'string', title: 'Private note', writeOnly: true },
    },
  },
  key: 'sku',
  index: ['price'],
  honeypot: 'homepage',
  read: ['anonymous'],
  insert: ['anonymous'],
  edit: ['anonymous'],
};

const page = (kind: string, path: string) => ({
  path,
  kind: `${kind}-record`,
  table: 'lamps',
  lang: 'en',
  enginedata: {
    title: `${kind} a lamp`,
    cancel: '/lamps/',
    done: { links: [{ href: '/edit/{sku}', label: 'Change it' }] },
  },
});
const started = startSite(
  { after },
  {
    rules: [
      page('insert', '/new'),
      page('edit', '/edit/*'),
      page('delete', '/delete/*'),
      {
        path: '/lamps/',
        kind: 'content',
        engine: 'template',
        lang: 'en',
        enginedata: {
          render: 'server',
          rows: { lamps: { table: 'lamps', sort: 'price' } },
          template:
            '<h1>Lamps</h1><ul>{% for lamp in rows.lamps %}<li>' +
            '<a href="/edit/{{ lamp.sku }}">{{ lamp.name }}</a> {{ lamp._titles_.shop }}</li>' +
            '{% endfor %}</ul>',
        },
      },
    ],
  },
);
let site: TestSite;
before(async () => {
  site = await started;
  for (const table of [shops, lamps]) {
    const { error } = await site.call('svc1.table.insert', table);
    assert.equal(error, undefined, JSON.stringify(error));
  }
  await store({ table: 'shops', code: 'harbour', name: 'At the harbour' });
  await store({ table: 'shops', code: 'mill', name: 'In the mill' });
});

async function store(row: object): Promise<{ readonly id: string }> {
  const { data, error } = await site.call('svc1.record.insert', row);
  assert.equal(error, undefined, JSON.stringify(error));
  return data as { id: string };
}

async function lamp(sku: string): Promise<Record<string, unknown> | undefined> {
  const { data } = await site.call('svc1.record.get', { table: 'lamps', sku });
  return data as Record<string, unknown> | undefined;
}

async function fillIn({ page }: Tab, sku: string): Promise<void> {
  await page.getByLabel('Number').fill(sku);
  await page.getByLabel('Name').fill('Tern');
  await page.getByLabel('Price').fill('12.5');
  await page.getByLabel('Shop').selectOption('In the mill');
  await page.getByLabel('Private note').fill('hush');
}

suite('a form of a table of Waymark', () => {
  test('inserts a row, with the titles of the rows that it refers to', async (t) => {
    const tab = await openTab(t);
    const { page } = tab;
    assert.equal(await visitGeneric(tab, `${site.url}/new`), 'rendered');
    await assertReadable(tab, 'the form');
    await fillIn(tab, 'TRN-1');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved. Thank you.').waitFor();
    const { name, price, shop } = (await lamp('TRN-1')) ?? {};
    assert.deepEqual([name, price, shop], ['Tern', 12.5, 'mill']);
    const link = page.getByRole('link', { name: 'Change it' });
    assert.equal(await link.getAttribute('href'), `${site.url}/edit/TRN-1`);
    assert.deepEqual(tab.troubles, []);
  });

  test('shows what the server refuses at its field, and keeps the input', async (t) => {
    await store({ table: 'lamps', sku: 'DUP-1', name: 'First' });
    const tab = await openTab(t);
    const { page } = tab;
    await visitGeneric(tab, `${site.url}/new`);
    await fillIn(tab, 'DUP-1');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('alert').getByText('Number: lamps has a row').waitFor();
    assert.equal(await page.getByLabel('Number').getAttribute('aria-invalid'), 'true');
    await page.getByLabel('Number').fill('DUP-2');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved. Thank you.').waitFor();
  });

  test('has a field that people and screen readers do not meet; filled in, it stores nothing', async (t) => {
    const tab = await openTab(t);
    const { page } = tab;
    await visitGeneric(tab, `${site.url}/new`);
    await fillIn(tab, 'BOT-1');
    const trap = page.locator('input[name=homepage]');
    assert.equal(await trap.getAttribute('tabindex'), '-1');
    assert.equal(await page.getByRole('textbox', { name: 'homepage' }).count(), 0);
    const box = await trap.boundingBox();
    assert.ok(box !== null && box.x < 0);
    await page.evaluate("document.querySelector('input[name=homepage]').value = 'spam'");
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved. Thank you.').waitFor();
    assert.equal(await lamp('BOT-1'), undefined);
  });

  test('stores one row although the answer was lost and the page was loaded again', async (t) => {
    const tab = await openTab(t);
    const { page } = tab;
    await visitGeneric(tab, `${site.url}/new`);
    await fillIn(tab, 'ONE-1');
    await page.route('**/record/insert', async (route) => {
      await route.fetch();
      await route.abort('connectionreset');
    });
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('The server does not answer').waitFor();
    const first = await lamp('ONE-1');
    await page.unroute('**/record/insert');
    await page.reload();
    await page.getByText('it is stored only once').waitFor();
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved. Thank you.').waitFor();
    assert.deepEqual(await lamp('ONE-1'), first);
  });

  test('edits the row of a key or an id, and keeps a writeOnly value that is not filled in', async (t) => {
    const { id } = await store({ table: 'lamps', sku: 'EDT-1', name: 'Heron', note: 'hush' });
    const tab = await openTab(t);
    const { page } = tab;
    for (const [address, price] of [
      [`/edit/EDT-1`, '3'],
      [`/edit/${id}`, '4'],
      [`/edit/?sku=EDT-1`, '5'],
      [`/edit/?id=${id}`, '6'],
    ] as const) {
      assert.equal(await visitGeneric(tab, site.url + address), 'rendered');
      assert.equal(await page.getByLabel('Name').inputValue(), 'Heron', address);
      assert.equal(await page.getByLabel('Private note').inputValue(), '');
      await page.getByLabel('Price').fill(price);
      await page.getByRole('button', { name: 'Save changes' }).click();
      await page.getByText('Your changes are saved.').waitFor();
      assert.equal((await lamp('EDT-1'))?.price, Number(price));
    }
    assert.deepEqual(tab.troubles, []);
  });

  test('shows the changes of another user field by field, and saves the choice', async (t) => {
    await store({ table: 'lamps', sku: 'CON-1', name: 'Heron', price: 1, shop: 'mill' });
    const tab = await openTab(t);
    const { page } = tab;
    await visitGeneric(tab, `${site.url}/edit/CON-1`);
    await site.call('svc1.record.edit', {
      table: 'lamps',
      sku: 'CON-1',
      price: 2,
      shop: 'harbour',
    });
    await page.getByLabel('Price').fill('3');
    await page.getByRole('button', { name: 'Save changes' }).click();
    const box = page.getByRole('alert');
    const price = box.getByRole('group', { name: 'Price' });
    await price.getByText('Stored now: 2').waitFor();
    assert.deepEqual(await price.locator('label').allInnerTexts(), ['Yours: 3', 'Stored now: 2']);
    const shop = box.getByRole('group', { name: 'Shop' });
    assert.ok(await shop.getByLabel('Stored now: At the harbour').isChecked());
    await price.getByLabel('Yours').check();
    await box.getByRole('button', { name: 'Use these values' }).click();
    await page.getByRole('button', { name: 'Save changes' }).click();
    await page.getByText('Your changes are saved.').waitFor();
    const stored = await lamp('CON-1');
    assert.deepEqual([stored?.price, stored?.shop], [3, 'harbour']);
  });

  test('deletes a row as it is shown: a changed one is shown again first', async (t) => {
    await store({ table: 'lamps', sku: 'DEL-1', name: 'Puffin', shop: 'mill' });
    const tab = await openTab(t);
    const { page } = tab;
    await visitGeneric(tab, `${site.url}/delete/DEL-1`);
    assert.match(await page.locator('dl').innerText(), /Puffin[^]*In the mill/);
    await site.call('svc1.record.edit', { table: 'lamps', sku: 'DEL-1', name: 'Razorbill' });
    await page.getByRole('button', { name: 'Delete' }).click();
    await page.getByText('This is how it is now').waitFor();
    assert.match(await page.locator('dl').innerText(), /Razorbill/);
    await page.getByRole('button', { name: 'Delete' }).click();
    await page.getByText('Deleted.').waitFor();
    assert.equal(await lamp('DEL-1'), undefined);
    await visitGeneric(tab, `${site.url}/delete/DEL-1`);
    await page.getByText('This record does not exist').waitFor();
  });

  test('says that only signed-in users may edit rows', async (t) => {
    const own = await startSite(t, {
      rules: [{ path: '/edit/*', kind: 'edit-record', table: 'lamps' }],
    });
    await own.call('svc1.table.insert', {
      ...lamps,
      index: [],
      insert: [],
      edit: [],
      schema: {
        ...lamps.schema,
        properties: { ...lamps.schema.properties, shop: { type: 'string' } },
      },
    });
    const tab = await openTab(t);
    assert.equal(await visitGeneric(tab, `${own.url}/edit/A`), 'rendered');
    await tab.page.getByText('You may not do this').waitFor();
  });
});

suite('pages of tables', () => {
  for (const { name: size, viewport } of sizes) {
    for (const colorScheme of ['light', 'dark'] as const) {
      test(`are open to all on ${size}, ${colorScheme}`, async (t) => {
        const sku = `AXE-${(size === 'a phone' ? 2 : 0) + (colorScheme === 'dark' ? 1 : 0)}`;
        await store({ table: 'lamps', sku, name: 'Heron', price: 1, shop: 'mill' });
        const tab = await openTab(t, { viewport, colorScheme });
        const { page } = tab;
        await visitGeneric(tab, `${site.url}/new`);
        await assertReadable(tab, 'the form');
        await page.getByRole('button', { name: 'Save' }).click();
        await page.getByRole('alert').waitFor();
        await assertOpenToAll(page, 'the form with errors');
        await visitGeneric(tab, `${site.url}/edit/${sku}`);
        await site.call('svc1.record.edit', { table: 'lamps', sku, price: 2, name: 'Tern' });
        await page.getByLabel('Price').fill('3');
        await page.getByRole('button', { name: 'Save changes' }).click();
        await page.getByRole('alert').waitFor();
        await assertReadable(tab, 'the conflict');
        await assertOpenToAll(page, 'the conflict');
        await visitGeneric(tab, `${site.url}/delete/${sku}`);
        await assertOpenToAll(page, 'the row to delete');
        await visitGeneric(tab, `${site.url}/lamps/`);
        await assertReadable(tab, 'the list');
        await assertOpenToAll(page, 'the list');
      });
    }
  }

  test('show their rows without JavaScript, and the same with it', async (t) => {
    const withoutScript = await openTab(t, { javaScriptEnabled: false });
    await visit(withoutScript, `${site.url}/lamps/`);
    const list = (tab: Tab) => tab.page.locator('#waymark').innerText();
    const shown = await list(withoutScript);
    assert.match(shown, /^Lamps\n/);
    const withScript = await openTab(t);
    assert.equal(await visitGeneric(withScript, `${site.url}/lamps/`), 'rendered');
    assert.equal(await list(withScript), shown);
    // The browser itself reads the same rows.
    await withScript.page.evaluate(`waymark.refresh()`);
    const { data } = await site.call('svc1.userinterface.list', { path: '/lamps/' });
    const [rule] = (data as { rows: { id: string; enginedata: object }[] }).rows;
    assert.ok(rule !== undefined);
    const enginedata = { ...rule.enginedata, render: 'browser' };
    await site.call('svc1.userinterface.edit', { id: rule.id, enginedata });
    await withScript.page.evaluate(`waymark.refresh()`);
    assert.equal(await list(withScript), shown);
    assert.equal(await visitGeneric(withScript, `${site.url}/lamps/`), 'rendered');
    assert.equal(await list(withScript), shown);
    await site.call('svc1.userinterface.edit', { id: rule.id, enginedata: rule.enginedata });
    assert.deepEqual(withScript.troubles, []);
  });
});
