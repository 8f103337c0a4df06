import assert from 'node:assert/strict';
import { after, suite, test } from 'node:test';
import { startSite } from '../harness.ts';
import { oneBrowser, visit, visitGeneric } from './browser.ts';
import { goTo, openConsole } from './console-tab.ts';

const openTab = oneBrowser();

/** Numbers that no double holds. */
const sold = '9007199254740993';
const share = '0.12345678901234567891';

const schema = {
  type: 'object',
  properties: {
    name: { type: 'string', title: 'Name' },
    note: { type: 'string', title: 'Note' },
    sold: { type: 'integer', title: 'Sold' },
    share: { type: 'number', title: 'Share' },
  },
};
const everybody = ['anonymous'];
const form = (kind: string) => ({
  ...{ path: `/${kind}/*`, kind: `${kind}-record`, table: 'lamps', lang: 'en' },
  engine: 'form',
});
const template = (path: string, render?: string) => ({
  ...{ path, kind: 'content', engine: 'template' },
  enginedata: {
    template: '<p id="n">{% for row in rows.all %}{{ row.sold }} {{ row.share }}{% endfor %}</p>',
    rows: { all: { table: 'lamps', sort: 'name' } },
    ...(render && { render }),
  },
});
const started = startSite(
  { after },
  { rules: [form('edit'), form('delete'), template('/browser'), template('/server', 'server')] },
);
const filled = started.then(async (site) => {
  const open = { read: everybody, edit: everybody, insert: everybody, delete: everybody };
  await site.call('svc1.table.insert', { name: 'lamps', key: 'name', schema, ...open });
  const row = { sold: JSON.rawJSON(sold), share: JSON.rawJSON(share) };
  for (const name of ['a', 'b']) {
    await site.call('svc1.record.insert', { table: 'lamps', name, ...row });
  }
  return site;
});

/** The JSON text of a row, whose numbers the test reads digit by digit. */
async function rowText(name: string): Promise<string> {
  const site = await filled;
  const address = `${site.url}/svc1/record/read?_v.table=lamps&_v.name=${name}`;
  return (await fetch(address, { headers: { apikey: site.adminKey } })).text();
}

suite('a number that no double holds', () => {
  test('stays as it is in a form that changes another field', async (t) => {
    const { url } = await filled;
    const tab = await openTab(t);
    assert.equal(await visitGeneric(tab, `${url}/edit/a`), 'rendered');
    assert.equal(await tab.page.getByLabel('Sold').inputValue(), sold);
    await tab.page.getByLabel('Note').fill('new');
    await tab.page.getByRole('button', { name: 'Save' }).click();
    await tab.page.getByText('Saved').first().waitFor();
    const text = await rowText('a');
    assert.ok(text.includes(`"sold":${sold}`) && text.includes(`"share":${share}`), text);
  });

  test('is sent as it is typed into a form', async (t) => {
    const { url } = await filled;
    const tab = await openTab(t);
    await visitGeneric(tab, `${url}/edit/b`);
    await tab.page.getByLabel('Sold').fill('90071992547409931');
    await tab.page.getByRole('button', { name: 'Save' }).click();
    await tab.page.getByText('Saved').first().waitFor();
    assert.match(await rowText('b'), /"sold":90071992547409931[,}]/);
  });

  test('is shown by templates in the browser as by those on the server', async (t) => {
    const { url } = await filled;
    const tab = await openTab(t);
    await visitGeneric(tab, `${url}/browser`);
    const inBrowser = await tab.page.locator('#n').textContent();
    assert.ok(inBrowser?.includes(`${sold} ${share}`), inBrowser ?? '');
    await visit(tab, `${url}/server`);
    assert.equal(await tab.page.locator('#n').textContent(), inBrowser);
  });

  test('stays as it is in the console', async (t) => {
    const site = await filled;
    const row = { table: 'lamps', name: 'd', sold: JSON.rawJSON(sold) };
    const { data } = await site.call('svc1.record.insert', row);
    const { page } = await openConsole(t, openTab, site, {});
    await goTo(page, `#/tables/lamps/row/${data.id as string}`, 'd');
    assert.equal(await page.getByLabel('sold').inputValue(), sold);
    await page.getByLabel('share').fill(share);
    await page.getByRole('button', { name: 'Save' }).click();
    await page.locator('.version-list a').nth(1).waitFor();
    const text = await rowText('d');
    assert.ok(text.includes(`"sold":${sold}`) && text.includes(`"share":${share}`), text);
  });
});
