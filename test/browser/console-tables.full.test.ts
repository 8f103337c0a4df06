import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, suite, test, type TestContext } from 'node:test';
import { startSite, type TestSite } from '../harness.ts';
import { assertOpenToAll } from './axe.ts';
import { assertReadable, oneBrowser, sizes } from './browser.ts';
import {
  goTo,
  heading,
  holdNext,
  hostile,
  openConsole,
  realTroubles,
  type ConsoleTab,
} from './console-tab.ts';

const openTab = oneBrowser();
const started = startSite({ after });
const rowCount = 1100;
const names = ['Tern', 'Heron', 'Plover', 'Dunlin'];

let filled: Promise<string> | undefined;

/** Makes the tables once; resolves to the id of a row with hostile texts. */
function fill(site: TestSite): Promise<string> {
  filled ??= (async () => {
    const text = { type: 'string' };
    const finish = { type: 'object', required: ['name'], properties: { name: text, label: text } };
    const finishes = { name: 'finishes', key: 'name', title: 'label', schema: finish };
    await site.call('svc1.table.insert', finishes);
    await site.call('svc1.record.insert', { table: 'finishes', name: 'brass', label: 'Brass' });
    const properties = {
      sku: text,
      name: { type: 'string', minLength: 2 },
      price: { type: 'number', minimum: 0 },
      finish: { type: 'string', 'x-table': 'finishes' },
      active: { type: 'boolean' },
    };
    const schema = { type: 'object', required: ['sku', 'name'], properties };
    const lamps = { name: 'lamps', key: 'sku', title: 'name', index: ['price'], search: ['name'] };
    await site.call('svc1.table.insert', { ...lamps, schema });
    const lines = Array.from({ length: rowCount }, (_, at) => {
      const v = { sku: `L-${at}`, name: `${names[at % 4] ?? ''} ${at}`, price: at % 500 };
      const more = at === 0 ? { finish: 'brass' } : {};
      return JSON.stringify({ a: 'svc1.record.insert', v: { table: 'lamps', ...v, ...more } });
    });
    await site.call('svc1.userinterface.import', { ndjson: lines.join('\n') });
    const row = { table: 'lamps', sku: 'evil', name: hostile, price: hostile, [hostile]: hostile };
    const { data } = await site.call('svc1.record.insert', row);
    return data.id as string;
  })();
  return filled;
}

async function signedIn(t: TestContext, options: object = {}): Promise<ConsoleTab> {
  const site = await started;
  await fill(site);
  return openConsole(t, openTab, site, options);
}

/** A row of its own for a test. */
async function insertLamp(site: TestSite, sku: string): Promise<{ id: string; seq: number }> {
  const v = { table: 'lamps', sku, name: `Lamp ${sku}`, price: 5 };
  return (await site.call('svc1.record.insert', v)).data;
}

/**
 * Runs in the page: scrolls a list to its end as its rows arrive. Returns the numbers of rendered
 * rows, and how many changes of the document a scroll within a row makes.
 */
const scrollToEnd = `(async () => {
  const box = document.querySelector('.virtual');
  const frame = () => new Promise(requestAnimationFrame);
  // The list loads its second page before anybody scrolls.
  while (box.firstElementChild.style.height !== '17600px') await frame();
  const watch = new MutationObserver(() => undefined);
  watch.observe(box, { childList: true, subtree: true, attributes: true, characterData: true });
  box.scrollTop = 20;
  await frame();
  await frame();
  const withinRow = watch.takeRecords().length;
  watch.disconnect();
  const counts = [];
  while (box.querySelector('li:last-child')?.getAttribute('aria-posinset') !== '1101') {
    box.scrollTop = box.scrollHeight;
    await frame();
    counts.push(box.querySelectorAll('li').length);
  }
  return { counts, withinRow };
})()`;

suite('the tables of the console', () => {
  for (const [at, { name, viewport }] of sizes.entries()) {
    // Colours do not depend on the size.
    for (const colorScheme of [at % 2 === 0 ? 'dark' : 'light'] as const) {
      test(`are open to all on ${name}, in ${colorScheme}, without errors`, async (t) => {
        const tab = await signedIn(t, { viewport, colorScheme });
        const id = await fill(tab.site);
        for (const [hash, title, element] of [
          ['#/tables', 'Tables', '.cards li'],
          ['#/tables/lamps', 'lamps', '.row'],
          ['#/tables/lamps/definition', 'Definition of lamps', '.table-fields'],
          ['#/tables/lamps/transfer', 'Import and export of lamps', '.file-input'],
          ['#/tables/lamps/row/new', 'New row', '.fields input'],
          [`#/tables/lamps/row/${id}?seq=${rowCount}`, /script/, '.version-list a'],
        ] as const) {
          await goTo(tab.page, hash, title);
          await tab.page.locator(element).first().waitFor();
          await assertReadable(tab, hash);
          await assertOpenToAll(tab.page, hash);
        }
        assert.equal(await tab.page.evaluate('window.hit'), undefined);
        assert.deepEqual(realTroubles(tab), []);
      });
    }
  }

  test('rows are filtered and sorted by an index, and found by their words', async (t) => {
    const { page } = await signedIn(t);
    await goTo(page, '#/tables/lamps', 'lamps');
    await page.getByText('1,101 rows').waitFor();
    const drawn = await page.locator('.row').count();
    assert.ok(drawn < 100, `${drawn} rows are drawn`);
    assert.match((await page.locator('.row').first().textContent()) ?? '', /Brass/);
    await page.getByLabel('Field', { exact: true }).selectOption('price');
    await page.getByLabel('Comparison').selectOption('>=');
    await page.getByLabel('Value', { exact: true }).fill('498');
    await page.getByRole('button', { name: 'Filter' }).click();
    await page.getByText('4 rows', { exact: true }).waitFor();
    await page.getByRole('link', { name: 'price' }).click();
    await page.getByRole('link', { name: 'price ↑' }).click();
    await page.getByRole('link', { name: 'price ↓' }).waitFor();
    await page.locator('.row').first().waitFor();
    assert.match((await page.locator('.row').first().textContent()) ?? '', /499/);
    await page.getByRole('button', { name: /price >= 498/ }).click();
    await page.getByText('1,101 rows').waitFor();
    await page.getByLabel('Words in name').fill('heron 1001');
    await page.keyboard.press('Enter');
    await page.getByText('1 row', { exact: true }).waitFor();
    assert.match((await page.locator('.row').first().textContent()) ?? '', /Heron 1001/);
  });

  test('a long list is scrolled with few requests and few rendered rows', async (t) => {
    const { page } = await signedIn(t);
    const requests: string[] = [];
    page.on('request', (request) => {
      if (request.url().endsWith('/record/list')) requests.push(request.postData() ?? '');
    });
    await goTo(page, '#/tables/lamps', 'lamps');
    await page.getByText('1,101 rows').waitFor();
    await page.locator('.row').first().waitFor();
    const rendered = await page.evaluate<{ counts: number[]; withinRow: number }>(scrollToEnd);
    assert.ok(Math.max(...rendered.counts) < 60, `${Math.max(...rendered.counts)} rows rendered`);
    assert.equal(rendered.withinRow, 0);
    await page.locator('li[aria-posinset="1101"]').waitFor();
    // One counts the rows; the pages have 200, 200, 400 and 800 rows.
    assert.equal(requests.length, 5, requests.join('\n'));
  });

  test('a row is made, checked while it is typed, changed, restored and deleted', async (t) => {
    const { page, site } = await signedIn(t);
    await goTo(page, '#/tables/lamps/row/new', 'New row');
    await page.getByLabel('sku required').fill('made-1');
    await page.getByLabel('name required').fill('M');
    const problems = page.locator('.fields .problem');
    await problems.filter({ hasText: 'name' }).waitFor();
    await page.getByLabel('name required').fill('Made here');
    await page.getByLabel('finish').fill('gold');
    await problems.filter({ hasText: 'no row of finishes' }).waitFor();
    await page.getByLabel('finish').fill('brass');
    await page.getByText('Brass', { exact: true }).last().waitFor();
    await page.getByRole('button', { name: 'Save' }).click();
    await heading(page, 'Made here');
    await page.getByLabel('price').fill('7');
    await page.keyboard.press('Control+s');
    await page.locator('.version-list a').nth(1).waitFor();
    const { data } = await site.call('svc1.record.read', { table: 'lamps', sku: 'made-1' });
    assert.deepEqual([data.price, data.finish], [7, 'brass']);
    await page.locator('.version-list a').last().click();
    await page.getByRole('button', { name: 'Restore this version' }).click();
    await page.getByRole('button', { name: /^Revert 1 change/ }).click();
    await page.locator('.version-list .tag', { hasText: 'reverted' }).waitFor();
    const { data: restored } = await site.call('svc1.record.read', {
      ...{ table: 'lamps', id: data.id },
    });
    assert.equal(restored.price, undefined);
    await page.getByRole('button', { name: 'Delete …' }).click();
    await page.getByRole('button', { name: /^Revert \d change/ }).click();
    await page.getByText('Reverted.').waitFor();
    const gone = await site.call('svc1.record.read', { table: 'lamps', id: data.id });
    assert.equal(gone.error?.code, 'not_found');
  });

  test('a value that waits is said to be wrong before it is changed', async (t) => {
    const { page, site } = await signedIn(t);
    const { id } = await insertLamp(site, 'waits');
    await site.call('svc1.record.edit', { table: 'lamps', id, price: 'dear' });
    await goTo(page, `#/tables/lamps/row/${id}`, 'Lamp waits');
    assert.equal(await page.getByLabel('price').inputValue(), 'dear');
    await page.locator('.fields .problem', { hasText: 'price' }).waitFor();
  });

  test('an edit of the same field by another user is resolved field by field', async (t) => {
    const { page, site } = await signedIn(t);
    const { id } = await insertLamp(site, 'both');
    await goTo(page, `#/tables/lamps/row/${id}`, 'Lamp both');
    await page.getByLabel('name required').fill('Mine');
    await page.getByLabel('active').check();
    const theirs = { table: 'lamps', id, name: 'Theirs', price: 6 };
    await site.call('svc1.record.edit', theirs);
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('radio', { name: /Their value/ }).check();
    await page.getByRole('button', { name: 'Use these values' }).click();
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved', { exact: true }).waitFor();
    await heading(page, 'Theirs');
    const { data } = await site.call('svc1.record.read', { table: 'lamps', id });
    assert.deepEqual([data.name, data.price, data.active], ['Theirs', 6, true]);
  });

  test('what a person writes while a row or a definition is saved stays', async (t) => {
    const { page, site } = await signedIn(t);
    const { id } = await insertLamp(site, 'meanwhile');
    const saved = page.getByText('Saved', { exact: true });
    await goTo(page, `#/tables/lamps/row/${id}`, 'Lamp meanwhile');
    const name = page.getByLabel('name required');
    await name.fill('One');
    let edit = await holdNext(page, '**/svc1/record/edit');
    await page.keyboard.press('Control+S');
    await edit.requested;
    // A second press while the first is on its way is no second edit.
    await page.keyboard.press('Control+S');
    await name.press('End');
    await page.keyboard.type(' and two');
    await page.getByLabel('price').fill('');
    edit.release();
    await heading(page, 'One');
    assert.equal(await name.inputValue(), 'One and two');
    assert.equal(await page.getByLabel('price').inputValue(), '');
    assert.equal(await page.getByText('Use these values').count(), 0);
    await name.press('End');
    await page.keyboard.type(' and three');
    await page.keyboard.press('Control+S');
    await saved.waitFor();
    const row = await site.call('svc1.record.read', { table: 'lamps', id });
    assert.deepEqual([row.data.name, row.data.price], ['One and two and three', undefined]);

    const properties = { web: { type: 'string' }, website: { type: 'string' } };
    await site.call('svc1.table.insert', {
      ...{ name: 'written', schema: { type: 'object', properties } },
    });
    await goTo(page, '#/tables/written/definition', 'Definition of written');
    const title = page.getByLabel('title');
    await title.fill('web');
    edit = await holdNext(page, '**/svc1/table/edit');
    await page.keyboard.press('Control+S');
    await edit.requested;
    await title.press('End');
    await page.keyboard.type('site');
    edit.release();
    await page.getByRole('button', { name: 'Save', exact: true }).waitFor();
    assert.equal(await title.inputValue(), 'website');
    await page.keyboard.press('Control+S');
    await saved.waitFor();
    const { data } = await site.call('svc1.table.list', { name: 'written' });
    assert.equal(data.rows[0].title, 'website');
  });

  test('a table is made, and a schema that rows do not fit says how many first', async (t) => {
    const { page, site } = await signedIn(t);
    await goTo(page, '#/tables/new', 'New table');
    await page.getByLabel('name required').fill('letters');
    await page.getByRole('button', { name: 'Save' }).click();
    await heading(page, 'letters');
    for (const name of ['a', 'long enough']) {
      await site.call('svc1.record.insert', { table: 'letters', name });
    }
    await goTo(page, '#/tables/letters/definition', 'Definition of letters');
    const editor = page.getByLabel('JSON Schema of a row', { exact: true });
    await editor.focus();
    await page.keyboard.press('Control+a');
    const schema = { type: 'object', properties: { name: { type: 'string', minLength: 5 } } };
    await page.keyboard.insertText(JSON.stringify(schema));
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('1 of 2 rows have values').waitFor();
    const before = await site.call('svc1.table.list', { name: 'letters' });
    assert.equal(before.data.rows[0].schema.properties.name.minLength, 1);
    const edited = page.waitForResponse(/table\/edit$/);
    await page.getByRole('button', { name: 'Change it, and let 1 wait' }).click();
    await edited;
    const after = await site.call('svc1.table.list', { name: 'letters' });
    assert.equal(after.data.rows[0].schema.properties.name.minLength, 5);
  });

  test('rows are exported, imported after a trial, and the import is undone', async (t) => {
    const { page, site } = await signedIn(t);
    await goTo(page, '#/tables/finishes/transfer', 'Import and export of finishes');
    const coming = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download all rows' }).click();
    const file = await (await coming).path();
    assert.match(await readFile(file, 'utf8'), /"svc1.record.insert".*"name":"brass"/);
    const lines = page.getByRole('textbox', { name: 'Lines of JSON' });
    await lines.fill('{"name":"slate"}\n{"label":"none"}');
    await page.getByRole('button', { name: 'Try the import' }).click();
    await page.getByText(/^Line 2: /).waitFor();
    const trial = await holdNext(page, '**/svc1/userinterface/import');
    await lines.fill('{"name":"ash"}');
    const tryIt = page.getByRole('button', { name: 'Try the import', disabled: false });
    await tryIt.click();
    await trial.requested;
    // What the trial finds does not hold for the lines that are written meanwhile.
    await lines.fill('{"name":"slate"}\n{"name":"oak","colour":"brown"}');
    trial.release();
    await tryIt.waitFor();
    assert.equal(await page.getByRole('button', { name: /^Import \d/ }).count(), 0);
    await page.getByRole('button', { name: 'Try the import' }).click();
    await page.getByText(/^Line 2: .*colour/).waitFor();
    await page.getByRole('button', { name: 'Import 2 rows' }).click();
    await page.getByRole('button', { name: 'Undo the import …' }).click();
    assert.equal((await site.call('svc1.table.counts', {})).data.rows.length > 0, true);
    await page.getByRole('button', { name: /^Revert 2 changes/ }).click();
    await page.getByText('Reverted.').waitFor();
    const { data } = await site.call('svc1.record.list', { table: 'finishes', count: true });
    assert.equal(data.count, 1);
  });
});
