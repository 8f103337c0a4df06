import { after, suite, test } from 'node:test';
import { postOperation, startSite } from '../harness.ts';
import { builtInEngines } from '../../src/modules/rules/rule.ts';
import { assertOpenToAll } from './axe.ts';
import { oneBrowser, sizes, visit, type Tab } from './browser.ts';
import { startDemo } from './demo-site.ts';
import { letterSite } from './form-rig.ts';

const openTab = oneBrowser();
const { url: demo } = await startDemo();
const { site: letters, host } = letterSite();
const plain = startSite(
  { after },
  {
    ini: '[disk.files]\npath = /files/\nroot = files\nlisting = yes\n',
    files: { 'files/a.txt': 'a', 'files/b/c.svg': '<svg/>' },
    rules: [
      { path: '/built-in', kind: 'content', engine: 'html', enginedata: { html: '<h1>x</h1>' } },
      { path: '/broken', kind: 'content', engine: 'html' },
    ],
  },
);

/** On a desktop in light mode; on a phone in dark mode the pages that may differ there. */
const looks = [
  { what: 'a desktop by day', rules: undefined, viewport: sizes[1].viewport, colorScheme: 'light' },
  {
    what: 'a phone by night',
    rules: ['color-contrast', 'target-size', 'scrollable-region-focusable'],
    viewport: sizes[0].viewport,
    colorScheme: 'dark',
  },
] as const;

async function look(tab: Tab, url: string): Promise<void> {
  await visit(tab, url);
  await tab.page.locator('[aria-busy]').waitFor({ state: 'detached' });
}

for (const { what, rules, ...options } of looks) {
  suite(`axe finds no barrier, on ${what}`, () => {
    const paths = {
      'from disk and another server': ['/', '/about/', '/tour/', '/stock/', '/supplier/today.html'],
      'that are stored': ['/offers/', '/visit/', '/lamps/puffin'],
      'that an engine makes': [
        '/lamps/heron',
        '/finishes/brass',
        '/finishes/gold',
        '/tides/',
        '/shelf/',
      ],
      'that an engine makes with more or less': ['/lighting-up/', '/frame.html', '/write/'],
      'of records that are not there': ['/letters/', '/letters/burn/1'],
    };
    for (const [where, those] of Object.entries(paths)) {
      test(`of the demo’s pages ${where}`, async (t) => {
        const tab = await openTab(t, options);
        for (const path of those) {
          await look(tab, demo + path);
          await assertOpenToAll(tab.page, path, rules);
        }
      });
    }

    test('of the demo’s letters', async (t) => {
      const letter = { name: 'Ada', email: 'a@example.org', message: 'One, please.' };
      const v = { table: 'letters', ...letter };
      const { data } = await postOperation(demo, 'svc1.record.insert', v, { vk: what });
      const { id } = data as { id: string };
      const tab = await openTab(t, options);
      for (const path of ['/letters/', `/letters/change/${id}`, `/letters/burn/${id}`]) {
        await look(tab, demo + path);
        await assertOpenToAll(tab.page, path, rules);
      }
    });

    test('of pages that Waymark ships', async (t) => {
      const { url } = await plain;
      const tab = await openTab(t, options);
      const engines = builtInEngines.map((name) => `/svc1/engines/${name}`);
      const docs = ['/svc1/', '/svc1/engines', ...engines];
      for (const path of [...docs, '/files/', '/files/b/', '/none', '/built-in', '/broken']) {
        await look(tab, url + path);
        await assertOpenToAll(tab.page, path, rules);
      }
    });

    test('of a form that is empty, invalid, refused or sent', async (t) => {
      const tab = await openTab(t, options);
      const { page } = tab;
      const { url } = letters();
      const send = page.getByRole('button', { name: 'Save' });
      await look(tab, `${url}/new`);
      await page.getByRole('button', { name: 'Add: Guest' }).click();
      await assertOpenToAll(page, 'an empty form', rules);
      await send.click();
      await assertOpenToAll(page, 'a form with mistakes', rules);
      await page.getByRole('button', { name: 'Remove: Guest' }).click();
      await page.getByLabel('Your name').fill('Ada');
      await page.getByLabel('Email').fill('ada@example.org');
      await page.getByRole('radio', { name: 'Tern' }).check();
      await page.getByLabel('Message').fill('One, please.');
      await page.getByLabel('I have read').check();
      await page.route(`${host().url}/`, (route) => route.abort('connectionrefused'), { times: 1 });
      await send.click();
      await page.getByText('does not answer').waitFor();
      await assertOpenToAll(page, 'a form that could not be sent', rules);
      await send.click();
      await page.getByText('Saved. Thank you.').waitFor();
      await assertOpenToAll(page, 'a form that was sent', rules);
      await page.getByRole('link', { name: 'Change it' }).click();
      await page.getByRole('button', { name: 'Save changes' }).waitFor();
      await assertOpenToAll(page, 'a form to change a record', rules);
      await look(tab, page.url().replace('/edit/', '/delete/'));
      await page.getByRole('button', { name: 'Delete' }).waitFor();
      await assertOpenToAll(page, 'a page to delete a record', rules);
    });
  });
}
