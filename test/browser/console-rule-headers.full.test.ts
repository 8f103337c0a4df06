import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startSite } from '../harness.ts';
import { oneBrowser } from './browser.ts';
import { goTo, openConsole, realTroubles } from './console-tab.ts';

const openTab = oneBrowser();

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
  await page.getByRole('status').getByText('Saved').waitFor();
  const read = await site.call('svc1.userinterface.read', { id: data.id });
  const headers = { 'X-A': '2', Link: ['</a.css>', '</b.css>'], Server: '' };
  assert.deepEqual(read.data.headers, headers);
  await fields.fill('no field');
  await page.getByText('headers has to be an object with names of header fields').waitFor();
  assert.deepEqual(realTroubles(tab), []);
});
