import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startSite } from '../harness.ts';
import { oneBrowser } from './browser.ts';
import { goTo, openConsole, realTroubles } from './console-tab.ts';

const openTab = oneBrowser();

test('a page gets its start and end in the editor, and the calendar shows both', async (t) => {
  const site = await startSite(t);
  const insert = { path: '/p', kind: 'content', content: 'p' };
  const { data } = await site.call('svc1.userinterface.insert', insert);
  const tab = await openConsole(t, openTab, site, { timezoneId: 'Europe/Zurich' });
  const { page } = tab;
  await goTo(page, `#/pages/${data.id}`, '/p');
  const zone = page.getByLabel('Time zone of its start');
  assert.equal(await zone.inputValue(), 'Europe/Zurich');
  await page.getByLabel('Answers from').fill('2999-12-01T08:00');
  await zone.fill('Asia/Tokyo');
  await page.getByLabel('Answers until').fill('2999-12-02T00:00');
  await page.keyboard.press('Control+S');
  await page.getByText('Saved', { exact: true }).waitFor();
  const { from, until } = (await site.call('svc1.userinterface.read', { id: data.id })).data;
  assert.deepEqual(
    [from, until],
    ['2999-11-30T23:00:00.000Z[Asia/Tokyo]', '2999-12-01T23:00:00.000Z[Europe/Zurich]'],
  );
  assert.equal(await page.getByLabel('Answers from').inputValue(), '2999-12-01T08:00');
  await site.call('svc1.draft.insert', { name: 'winter' });
  await site.call('svc1.userinterface.insert', { ...insert, path: '/w' }, { draft: 'winter' });
  const { digest } = (await site.call('svc1.draft.publish', { draft: 'winter' })).data;
  const at = '2999-12-02T09:30';
  const schedule = { draft: 'winter', confirm: digest, at, time_zone: 'Europe/Zurich' };
  await site.call('svc1.draft.publish', schedule);

  await goTo(page, '#/calendar', 'Calendar');
  const days = page.locator('.calendar-day');
  await days.nth(1).getByText('winter').waitFor();
  assert.deepEqual(
    (await days.allInnerTexts()).map((text) => text.replaceAll(/[,\s]+/g, ' ')),
    [
      'Sunday 1 December 2999 00:00 begins /p 08:00 in Asia/Tokyo',
      'Monday 2 December 2999 00:00 ends /p 09:30 goes live winter',
    ],
  );
  await days.first().getByRole('link', { name: '/p' }).press('Enter');
  await page.getByRole('heading', { name: '/p', exact: true }).waitFor();
  await page.getByLabel('Answers until').fill('');
  await page.keyboard.press('Control+S');
  await page.getByText('Saved', { exact: true }).waitFor();
  const read = await site.call('svc1.userinterface.read', { id: data.id });
  assert.equal(read.data.until, undefined);
  assert.deepEqual(realTroubles(tab), []);
});
