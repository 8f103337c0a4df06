import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { startSite } from '../harness.ts';
import { eventually, startFollower, untilEqual } from '../modules/nodes/rig.ts';
import { assertOpenToAll } from './axe.ts';
import { assertReadable, oneBrowser, sizes } from './browser.ts';
import { code, goTo, heading, openConsole, realTroubles } from './console-tab.ts';

const openTab = oneBrowser();

test('the console of a counter signs in there, shows its outbox, and works without the centre', async (t) => {
  const centre = await startSite({ after }, { listen: 'listen = 127.0.0.1:0' });
  const counter = await startFollower({ after }, centre, { name: 'till-3', role: 'counter' });
  const { adminKey: apikey } = centre;
  const table = { name: 'lamps', schema: { properties: { name: { type: 'string' } } } };
  assert.equal((await centre.call('svc1.table.insert', table)).error, undefined);
  await untilEqual(centre, counter);
  // The key of the node may follow and send events, but write no rows.
  const row = { table: 'lamps', name: code };
  assert.equal((await counter.call('svc1.record.insert', row, { apikey })).error, undefined);
  /** Until so many entries are refused, none of which is the former one. */
  const untilRefused = (former?: number, refused = 1): Promise<void> =>
    eventually(async () => {
      const { data } = await counter.call('svc1.outbox.list', { refused: true }, { apikey });
      assert.equal(data.refused, refused);
      assert.equal((data.rows as { n: number }[]).filter(({ n }) => n === former).length, 0);
    });
  await untilRefused();
  const { data } = await counter.call('svc1.outbox.list', { refused: true }, { apikey });
  const tab = await openConsole(t, openTab, { ...counter, adminKey: apikey });
  const { page } = tab;
  await page.getByText('connected', { exact: true }).waitFor();
  await goTo(page, '#/operations/nodes', 'Nodes');
  const entry = page.locator('.table-list li');
  await entry.getByText('Row of lamps').waitFor();
  for (const [at, { viewport }] of sizes.entries()) {
    await page.setViewportSize(viewport);
    await page.emulateMedia({ colorScheme: at === 0 ? 'dark' : 'light' });
    await assertReadable(tab, 'the outbox');
    await assertOpenToAll(page, 'the outbox');
  }
  await page.getByRole('button', { name: 'Send again' }).click();
  await page.getByText('It will be sent again').waitFor();
  await untilRefused(data.rows[0].n as number);
  await goTo(page, '#/operations/cache', 'Cache');
  await goTo(page, '#/operations/nodes', 'Nodes');
  page.on('dialog', (dialog) => void dialog.accept());
  await page.getByRole('button', { name: 'Discard …' }).click();
  await page.getByText('The centre has refused nothing.').waitFor();
  for (const name of ['one', 'two']) {
    const more = { table: 'lamps', name };
    assert.equal((await counter.call('svc1.record.insert', more, { apikey })).error, undefined);
  }
  await untilRefused(undefined, 2);
  await goTo(page, '#/operations/cache', 'Cache');
  await goTo(page, '#/operations/nodes', 'Nodes');
  await page.getByRole('button', { name: 'Send all again' }).click();
  await page.getByText('2 will be sent again.').waitFor();
  await untilRefused(undefined, 2);
  await goTo(page, '#/operations/cache', 'Cache');
  await goTo(page, '#/operations/nodes', 'Nodes');
  await page.getByRole('button', { name: 'Discard all …' }).click();
  await page.getByText('2 discarded.').waitFor();
  await page.getByText('The centre has refused nothing.').waitFor();
  assert.deepEqual(realTroubles(tab), []);

  await centre.waymark.stop(0);
  const event = { type: 'a.sale', data: {} };
  assert.equal((await counter.call('svc1.event.insert', event, { apikey })).error, undefined);
  await counter.untilLogged(/The copying of the log of the centre stopped/);
  await goTo(page, '#/operations/cache', 'Cache');
  await goTo(page, '#/operations/nodes', 'Nodes');
  await page.getByText('not connected').waitFor();
  await entry.getByText('a.sale').waitFor();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await heading(page, 'Sign in');
  await page.getByLabel('API key').fill(apikey);
  await page.keyboard.press('Enter');
  await heading(page, 'Nodes');
});
