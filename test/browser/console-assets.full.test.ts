import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { suite, test } from 'node:test';
import { startSite, type TestSite } from '../harness.ts';
import { oneBrowser } from './browser.ts';
import { goTo, heading, openConsole, realTroubles } from './console-tab.ts';

const openTab = oneBrowser();
const title = 'Pictures and files';
const file = (name: string, buffer: string | Buffer, mimeType = 'text/plain') => ({
  ...{ name, mimeType },
  buffer: Buffer.from(buffer),
});
const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

async function assetNames(site: TestSite): Promise<readonly string[]> {
  const { data } = await site.call('svc1.asset.list', {});
  return data.rows.map(({ name }: { readonly name: string }) => name);
}

suite('the library of the console', () => {
  test('uploads files, gives them an address, and deletes them with a warning', async (t) => {
    const site = await startSite(t);
    const tab = await openConsole(t, openTab, site, {
      permissions: ['clipboard-read', 'clipboard-write'],
    });
    const { page } = tab;
    await goTo(page, '#/assets', title);
    await page.getByText('No files yet').waitFor();
    const input = page.locator('input[type=file]');
    await input.setInputFiles([file('pier.png', png), file('notes.txt', 'tide')]);
    const cards = page.locator('.asset-cards > li');
    await cards.nth(1).waitFor();
    const pier = cards.filter({ hasText: 'pier.png' });
    await pier.locator('.thumbnail img').waitFor();
    await pier.getByText('No page shows it').waitFor();

    // The same name again: nothing is replaced unasked.
    await input.setInputFiles(file('notes.txt', 'ebb'));
    await page.getByRole('button', { name: 'Keep both' }).click();
    await cards.filter({ hasText: 'notes-2.txt' }).waitFor();
    await input.setInputFiles(file('notes.txt', 'flood'));
    await page.getByRole('button', { name: 'Replace it' }).click();
    await page.getByRole('button', { name: 'Close the list' }).click();
    assert.deepEqual(await assetNames(site), ['notes-2.txt', 'notes.txt', 'pier.png']);

    await pier.getByRole('button', { name: 'Give it an address' }).click();
    await pier.getByRole('link', { name: '/assets/pier.png' }).waitFor();
    assert.equal((await fetch(`${site.url}/assets/pier.png`)).status, 200);
    await pier.getByRole('button', { name: 'Copy address' }).click();
    await pier.getByText('Copied').waitFor();
    const copied = await page.evaluate('navigator.clipboard.readText()');
    assert.equal(copied, `${site.url}/assets/pier.png`);

    await page.getByLabel('Shown by no page').check();
    await pier.waitFor({ state: 'detached' });
    await page.getByLabel('Shown by no page').uncheck();
    await pier.getByRole('button', { name: 'Delete … pier.png' }).click();
    await pier.getByText('This page would have no file:').waitFor();
    await pier.getByRole('button', { name: 'Delete it' }).click();
    await page.getByText('pier.png is deleted.').waitFor();
    await pier.waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Undo' }).click();
    await page.getByText('pier.png is back.').waitFor();
    await pier.waitFor();
    assert.equal((await fetch(`${site.url}/assets/pier.png`)).status, 200);
    assert.deepEqual(realTroubles(tab), []);
  });

  test('continues an upload whose connection was lost', async (t) => {
    const site = await startSite(t);
    const { page } = await openConsole(t, openTab, site);
    const content = randomBytes(200_000);
    const ranges: string[] = [];
    await page.route('**/svc1/asset/film.bin', async (route) => {
      const headers = await route.request().allHeaders();
      const { apikey = '', cookie = '', 'content-range': range = 'whole' } = headers;
      ranges.push(range);
      if (ranges.length > 1) {
        await route.continue();
        return;
      }
      // What has arrived before the connection is lost.
      const sent = await fetch(`${site.url}/svc1/asset/film.bin`, {
        ...{ method: 'PUT', body: new Uint8Array(content.subarray(0, 120_000)) },
        headers: { apikey, cookie, 'content-range': 'bytes 0-119999/200000' },
      });
      assert.equal(sent.status, 202);
      await route.abort('connectionreset');
    });
    await goTo(page, '#/assets', title);
    await page.locator('input[type=file]').setInputFiles(file('film.bin', content, 'video/x'));
    await page.locator('.asset-cards').getByText('film.bin').waitFor();
    assert.deepEqual(ranges, ['whole', 'bytes */200000', 'bytes 120000-199999/200000']);
    const headers = { apikey: site.adminKey };
    const stored = await fetch(`${site.url}/svc1/asset/film.bin`, { headers });
    assert.deepEqual(Buffer.from(await stored.arrayBuffer()), content);
  });

  test('says why an upload is refused, and goes on with the next one', async (t) => {
    const site = await startSite(t, { ini: '[asset]\nmax = 1KiB\n' });
    const { page } = await openConsole(t, openTab, site);
    await goTo(page, '#/assets', title);
    const files = [file('long.txt', 'x'.repeat(2_000)), file('short.txt', 'x')];
    await page.locator('input[type=file]').setInputFiles(files);
    await page.getByText('An asset may have 1024 bytes').waitFor();
    await page.locator('.asset-cards').getByText('short.txt').waitFor();
  });
});

suite('the editor of the console', () => {
  test('uploads a picture that is dropped into the text, and shows it', async (t) => {
    const rule = { path: '/p', kind: 'content', content: '<p>one</p>\n<p>two</p>\n' };
    const site = await startSite(t, { rules: [rule] });
    const { data } = await site.call('svc1.userinterface.list', { path: '/p' });
    const [{ id }] = data.rows;
    const tab = await openConsole(t, openTab, site);
    const { page } = tab;
    await goTo(page, `#/pages/${id}`, '/p');
    const line = page.locator('.code .cm-line').nth(1);
    await line.waitFor();
    const dropped = await page.evaluateHandle(`(() => {
      const canvas = new OffscreenCanvas(1000, 500);
      const context = canvas.getContext('2d');
      for (let x = 0; x < 1000; x += 7) {
        context.fillStyle = 'hsl(' + x + ' 80% 50%)';
        context.fillRect(x, x % 400, 9, 90);
      }
      return canvas.convertToBlob({ type: 'image/png' }).then((blob) => {
        const transfer = new DataTransfer();
        transfer.items.add(new File([blob], 'The pier.png', { type: 'image/png' }));
        return transfer;
      });
    })()`);
    const box = await line.boundingBox();
    assert.ok(box !== null);
    const at = { clientX: box.x + 1, clientY: box.y + box.height / 2 };
    await line.dispatchEvent('drop', { dataTransfer: dropped, ...at });
    await page.getByText('The pier.png is inserted.').waitFor();
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved', { exact: true }).waitFor();
    const { content } = (await site.call('svc1.userinterface.read', { id })).data;
    const [first, picture = '', last] = String(content).split('\n');
    assert.deepEqual([first, last], ['<p>one</p>', '<p>two</p>']);
    assert.match(picture, /^<img src="\/assets\/The%20pier\.png/);
    assert.match(picture, / width="1000" height="500" alt="">$/);
    const source = /src="([^"]+)"/.exec(picture)?.[1] ?? '';
    assert.equal((await fetch(site.url + source)).status, 200);
    assert.deepEqual(await assetNames(site), ['The pier.png']);
    assert.deepEqual(realTroubles(tab), []);
  });

  test('shows pictures that only the draft has, one behind the other', async (t) => {
    const rule = { path: '/p', kind: 'content', content: '<p>one</p>\n' };
    const site = await startSite(t, { rules: [rule] });
    await site.call('svc1.draft.insert', { name: 'spring' });
    const { data } = await site.call('svc1.userinterface.list', { path: '/p' });
    const tab = await openConsole(t, openTab, site);
    const { page } = tab;
    await page.getByLabel('What you work in').selectOption({ label: 'Draft: spring' });
    await goTo(page, `#/pages/${data.rows[0].id}`, '/p');
    await page.locator('.code .cm-content').first().click();
    await page.keyboard.press('ControlOrMeta+End');
    for (const name of ['pier.png', 'quay.png']) {
      await page.locator('input[type=file]').setInputFiles(file(name, png, 'image/png'));
      await page.getByText(`${name} is inserted.`).waitFor();
    }
    const pictures = page.frameLocator('.preview').locator('img[src^="data:image/png"]');
    await pictures.nth(1).waitFor({ state: 'attached' });
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved', { exact: true }).waitFor();
    const { id } = data.rows[0];
    const { content } = (await site.call('svc1.userinterface.read', { id }, { draft: 'spring' }))
      .data;
    assert.match(
      String(content),
      /^<p>one<\/p>\n<img src="\/assets\/pier.*\n<img src="\/assets\/quay.*\n$/,
    );
    assert.deepEqual(realTroubles(tab), []);
  });

  test('inserts a chosen file at the cursor, in a draft as well', async (t) => {
    const site = await startSite(t);
    await site.call('svc1.draft.insert', { name: 'spring' });
    const tab = await openConsole(t, openTab, site);
    const { page } = tab;
    await page.getByLabel('What you work in').selectOption({ label: 'Draft: spring' });
    await goTo(page, '#/pages/new', 'New page');
    await page.locator('.code .cm-content').first().click();
    await page.keyboard.type('<p>Notes: ');
    await page.locator('input[type=file]').setInputFiles(file('notes.txt', 'tide'));
    await page.getByText('notes.txt is inserted.').waitFor();
    await page.getByLabel('Path').fill('/new');
    await page.getByRole('button', { name: 'Save' }).click();
    await heading(page, '/new');
    assert.deepEqual(await assetNames(site), []);
    const { data } = await site.call('svc1.asset.list', {}, { draft: 'spring' });
    assert.equal(data.rows[0].uses[0].path, '/assets/notes.txt');
    assert.deepEqual(realTroubles(tab), []);
  });

  test('lists links that lead nowhere, as the draft has them', async (t) => {
    const rules = [{ path: '/there', kind: 'content', content: 'x' }];
    const site = await startSite(t, { rules });
    const tab = await openConsole(t, openTab, site);
    const { page } = tab;
    await goTo(page, '#/pages/new', 'New page');
    await page.locator('.code .cm-content').first().click();
    await page.keyboard.type('<a href="/there">a</a> <a href="gone">b</a> <a href="/no.png">c</a>');
    const note = page.getByText('Links that lead nowhere:');
    await note.getByText('/no.png').waitFor();
    assert.deepEqual(await note.locator('code').allInnerTexts(), ['/gone', '/no.png']);
    assert.deepEqual(realTroubles(tab), []);
  });
});
