import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { devices, type BrowserContextOptions } from 'playwright-core';
import { startSite } from '../harness.ts';
import { oneBrowser } from './browser.ts';

const page = (path: string) => ({ path, kind: 'content', content: `<title>${path}</title>` });
const landing = {
  path: '/go',
  kind: 'resolve',
  enginedata: {
    target: '/anything-else',
    forward_query: true,
    when: [
      { if: { device: 'tablet' }, target: '/for-tablets' },
      { if: { device: 'mobile', lang: 'de' }, target: '/fuer-handys' },
      { if: { device: 'mobile' }, target: '/for-phones' },
      { if: { device: 'desktop' }, target: '/for-desktops' },
    ],
  },
};
const rules = [
  landing,
  ...['/anything-else', '/for-tablets', '/for-phones', '/for-desktops', '/fuer-handys'].map(page),
];

suite('a breadcrumb leads a browser', () => {
  const open = oneBrowser();
  const cases: readonly (readonly [
    title: string,
    options: BrowserContextOptions,
    lands: string,
  ])[] = [
    ['of a telephone with Android', devices['Pixel 7'], '/for-phones'],
    ['of a telephone of Apple', devices['iPhone 15'], '/for-phones'],
    ['of a reader of German', { ...devices['Pixel 7'], locale: 'de-CH' }, '/fuer-handys'],
    // A tablet sends Sec-CH-UA-Mobile: ?0, unlike the browser that emulates it.
    ['of a tablet', { ...devices['Galaxy Tab S9'], isMobile: false }, '/for-tablets'],
    ['of a desktop', devices['Desktop Chrome'], '/for-desktops'],
  ];
  for (const [title, options, lands] of cases) {
    test(`${title} to ${lands}`, async (t) => {
      const site = await startSite(t, { rules });
      const { page: tab, troubles } = await open(t, options);
      await tab.goto(`${site.url}/go?a=1`);
      assert.equal(tab.url(), `${site.url}${lands}?a=1`);
      assert.equal(await tab.title(), lands);
      assert.deepEqual(troubles, []);
    });
  }

  test('that may be a tablet after one more request for client hints, and later at once', async (t) => {
    const site = await startSite(t, { rules });
    const { page: tab } = await open(t);
    const visits = () =>
      site
        .logged()
        .split('\n')
        .filter((line) => line.includes('/go')).length;
    await tab.goto(`${site.url}/go`);
    assert.equal(tab.url(), `${site.url}/for-desktops`);
    assert.equal(visits(), 2);
    await tab.goto(`${site.url}/go`);
    assert.equal(visits(), 3);
  });

  test('to the same branch of a share again, by its cookie', async (t) => {
    const shares = {
      target: '/for-desktops',
      when: [{ if: { percent: 50 }, target: '/for-phones' }],
    };
    const site = await startSite(t, {
      rules: [...rules, { ...landing, path: '/half', enginedata: shares }],
    });
    const { page: tab } = await open(t);
    await tab.goto(`${site.url}/half`);
    const landed = tab.url();
    const [cookie, ...others] = await tab.context().cookies();
    assert.deepEqual([cookie?.name, others], ['waymark_lot', []]);
    await tab.context().setExtraHTTPHeaders({ 'user-agent': 'another browser by now' });
    await tab.goto(`${site.url}/half`);
    assert.equal(tab.url(), landed);
  });
});
