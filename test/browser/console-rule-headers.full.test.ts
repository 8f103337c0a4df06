import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startSite } from '../harness.ts';
import { oneBrowser } from './browser.ts';
import { goTo, holdNext, openConsole, realTroubles } from './console-tab.ts';

const openTab = oneBrowser();

test('what a person writes while a page is saved stays', async (t) => {
  const site = await startSite(t);
  const insert = { path: '/p', kind: 'content', content: 'p', enginecomments: 'one' };
  const { data } = await site.call('svc1.userinterface.insert', insert);
  const { page } = await openConsole(t, openTab, site);
  await goTo(page, `#/pages/${data.id}`, '/p');
  const edit = await holdNext(page, '**/svc1/userinterface/edit');
  const comments = page.getByLabel('Comments');
  await comments.fill('two');
  await page.keyboard.press('Control+S');
  await edit.requested;
  // A second press while the first is on its way is no second edit, which would be outdated.
  await page.keyboard.press('Control+S');
  await comments.press('End');
  await page.keyboard.type(' and three');
  edit.release();
  const save = page.getByRole('button', { name: 'Save', exact: true });
  await save.waitFor();
  assert.equal(await comments.inputValue(), 'two and three');
  await page.keyboard.type(' and four');
  assert.equal(await comments.inputValue(), 'two and three and four');
  await save.click();
  await page.getByText('Saved', { exact: true }).waitFor();
  const read = await site.call('svc1.userinterface.read', { id: data.id });
  assert.equal(read.data.enginecomments, 'two and three and four');
});

test('the editor of a page has its header fields, one on each line', async (t) => {
  const site = await startSite(t);
  const insert = { path: '/p', kind: 'content', content: 'p', headers: { 'X-A': '1' } };
  const { data } = await site.call('svc1.userinterface.insert', insert);
  const tab = await openConsole(t, openTab, site);
  const { page } = tab;
  await goTo(page, `#/pages/${data.id}`, '/p');
  const fields = page.getByLabel('Header fields');
  assert.equal(await fields.inputValue(), 'X-A: 1');
  await fields.fill('X-A: 2\nLink: </a.css>\nLink: </b.css>\nServer:');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('Saved', { exact: true }).waitFor();
  const read = await site.call('svc1.userinterface.read', { id: data.id });
  const headers = { 'X-A': '2', Link: ['</a.css>', '</b.css>'], Server: '' };
  assert.deepEqual(read.data.headers, headers);
  await fields.fill('no field');
  await page.getByText('headers has to be an object with names of header fields').waitFor();
  assert.deepEqual(realTroubles(tab), []);
});
