import { globSync } from 'node:fs';
import { suite, test } from 'node:test';
import type { Page } from 'playwright-core';
import { builtInEngines } from '../../src/modules/rules/rule.ts';
import { builtDocs } from '../docs/built-docs.ts';
import { cleaningAfterAll } from '../folder.ts';
import { startSite, type TestSite } from '../harness.ts';
import { oneBrowser, visit, type Tab } from './browser.ts';
import { signIn } from './console-tab.ts';
import { startDemo } from './demo-site.ts';
import { letterSite } from './form-rig.ts';
import { documentedScreens, show } from './screens.ts';
import { assertFits, everyWay, prepareWidths, zoomed } from './widths.ts';

const openTab = oneBrowser();
const { folder: docsFolder } = await builtDocs();
const demo = await startDemo();
const { site: letters } = letterSite();
const screens = documentedScreens();

/** Texts without a place to break a line, from left to right and from right to left. */
const wide = 'W'.repeat(200);
const rightToLeft = 'שלום'.repeat(20);

/** A table in whose form every text is wide. */
const wideTable = {
  title: wide,
  type: 'object',
  required: ['text', 'one'],
  properties: {
    text: { type: 'string', title: wide, description: wide },
    one: { enum: [wide, rightToLeft] },
    select: { enum: Array.from({ length: 20 }, (_, at) => `${wide}${at}`) },
    many: { type: 'array', title: wide, items: { enum: [wide, 'x'] } },
    list: { type: 'array', minItems: 1, items: { type: 'string', title: wide } },
    group: {
      type: 'object',
      title: wide,
      properties: { at: { type: 'string', format: 'date-time', title: rightToLeft } },
    },
  },
};

function wideForm(path: string, lang: string): object {
  const enginedata = { heading: wide, intro: wide, submit: { url: '/data', a: 'x.insert' } };
  return { path, lang, kind: 'insert-record', table: 'wide', engine: 'form', enginedata };
}

function startPlain(): Promise<TestSite> {
  return startSite(cleaningAfterAll(), {
    docsFolder,
    ini:
      '[disk.files]\npath = /files/\nroot = files\nlisting = yes\n' +
      '[table.wide]\nschema = wide.json\n',
    files: {
      'wide.json': JSON.stringify(wideTable),
      'files/a.txt': 'a',
      [`files/${'w'.repeat(200)}/${'v'.repeat(200)}.svg`]: '<svg/>',
      [`files/${rightToLeft}.txt`]: 'x',
    },
    rules: [
      { path: '/built-in', kind: 'content', engine: 'html', enginedata: { html: '<h1>x</h1>' } },
      { path: '/broken', kind: 'content', engine: 'html' },
      wideForm('/wide', 'en'),
      wideForm('/wide-rtl', 'ar'),
    ],
  });
}

const plain = await startPlain();

/** The pages of the demo, whose own style does not fit a zoomed telephone. */
const demoPaths = [
  ...['/', '/about/', '/tour/', '/stock/', '/supplier/today.html', '/offers/', '/visit/'],
  ...['/lamps/puffin', '/lamps/heron', '/finishes/brass', '/tides/', '/shelf/', '/lighting-up/'],
  ...['/frame.html', '/write/', '/letters/', '/letters/burn/1'],
];

async function look(tab: Tab, url: string): Promise<void> {
  await visit(tab, url);
  await tab.page.locator('[aria-busy]').waitFor({ state: 'detached' });
}

/** Sends a form, so that it shows a problem at each field. */
async function sendEmpty(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('alert').waitFor();
}

/** A theme changes colours: one of them needs each width, not each way. */
const themes = [
  { colorScheme: 'light', way: [...everyWay, ...zoomed] },
  { colorScheme: 'dark', way: [320, 390, 720, 160] },
] as const;

for (const { colorScheme, way } of themes) {
  suite(`nothing is wider than its place at any width, in ${colorScheme},`, () => {
    const options = { locale: 'en-GB', colorScheme, viewport: { width: 1440, height: 900 } };

    test('on every screen of the console', async (t) => {
      const { site, screens: all } = await screens;
      const tab = await openTab(t, options);
      await prepareWidths(tab.page);
      await signIn(tab, site.url, site.adminKey);
      for (const screen of all) {
        await show(tab.page, screen);
        await assertFits(tab.page, screen.hash, way);
        await tab.page.setViewportSize(options.viewport);
      }
    });

    test('on every page of the documentation', async (t) => {
      const tab = await openTab(t, options);
      await prepareWidths(tab.page);
      for (const path of globSync('**/*.html', { cwd: docsFolder }).sort()) {
        await visit(tab, `${plain.url}/svc1/docs/${path}`);
        await assertFits(tab.page, path, way);
      }
    });

    test('on the pages that Waymark ships', async (t) => {
      const tab = await openTab(t, options);
      const { page } = tab;
      await prepareWidths(page);
      for (const path of [
        ...['/files/', `/files/${'w'.repeat(200)}/`, `/${wide}`, '/a%zz', '/built-in', '/broken'],
        ...['/svc1/', '/svc1/engines', ...builtInEngines.map((one) => `/svc1/engines/${one}`)],
        '/svc1/webhooks',
      ]) {
        await look(tab, plain.url + path);
        await assertFits(page, path, way);
      }
      for (const url of [
        `${letters().url}/new`,
        `${letters().url}/edit/none`,
        ...['/wide', '/wide-rtl'].map((path) => plain.url + path),
      ]) {
        await look(tab, url);
        await assertFits(page, url, way);
        if (url.endsWith('none')) continue;
        await page.setViewportSize(options.viewport);
        await sendEmpty(page);
        await assertFits(page, `${url} with problems`, way);
      }
    });

    test('on the pages of the demo', async (t) => {
      const tab = await openTab(t, options);
      await prepareWidths(tab.page);
      for (const path of demoPaths) {
        await look(tab, demo.url + path);
        await assertFits(
          tab.page,
          path,
          way.filter((width) => width >= 320),
        );
      }
    });
  });
}
