import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test, type TestContext } from 'node:test';
import { anomaliesOf } from '../../console/src/overview/find-anomalies.ts';
import { cleaningAfterAll } from '../folder.ts';
import { startSite, type TestSite } from '../harness.ts';
import { assertOpenToAll } from './axe.ts';
import { assertReadable, oneBrowser, sizes } from './browser.ts';
import { goTo, heading, openConsole, realTroubles } from './console-tab.ts';

const openTab = oneBrowser();
const minuteMs = 60_000;

/** A site with server errors a few minutes ago, after a change, and a webhook that fails. */
async function start(): Promise<{ readonly site: TestSite; readonly hook: string }> {
  const cleaning = cleaningAfterAll();
  const site = await startSite(cleaning, {
    ini: '[webhook]\nallow_private = 127.0.0.0/8\nretry = 1h\n',
    rules: [{ path: '/shop', kind: 'content', content: 'shop' }],
  });
  const url = 'http://127.0.0.1:1/';
  const { id: hook } = (
    await site.call('svc1.webhook.insert', { name: 'Partner', event: ['sale.completed'], url })
  ).data;
  await site.call('svc1.event.insert', { type: 'sale.completed', data: { id: 'S-1' } });
  for (let state = ''; state !== 'failing';)
    state = (await site.call('svc1.webhook.health', {})).data.rows[0].state;
  const changes = (await site.call('svc1.change.list', { family: 'userinterface' })).data.rows;
  await writeSeries(site, Date.parse(changes[0].dtu_stored));
  return { site, hook };
}

/**
 * Replaces the series of the site's metrics: webhooks fail in the minute of a change, and requests
 * in it and in the one before. The server adds its own first counts a minute after its start.
 */
async function writeSeries(site: TestSite, changedMs: number): Promise<void> {
  const nowMs = Math.floor(changedMs / minuteMs) * minuteMs;
  const points = [-3, -2, -1, 0].map((minute) => ({
    time: nowMs + minute * minuteMs,
    classes: [0, 100, 0, 0, minute < -1 ? 0 : 30],
    ...{ sources: [0, 100, 0, 0], durations: [100, 0, 0], cache: [0, 0], bytes: 1000 },
    hooks: [0, minute === 0 ? 2 : 0],
  }));
  const tiers = [minuteMs, 15 * minuteMs, 60 * minuteMs].map((stepMs) => ({ stepMs, points }));
  const series = { version: 1, bounds: [0.1, 1], tiers };
  await writeFile(join(site.folder, 'data/series.json'), JSON.stringify(series));
}

suite('the overview of the console', () => {
  const shared = start();

  async function signedIn(t: TestContext, options: object = {}) {
    const all = await shared;
    return { ...all, ...(await openConsole(t, openTab, all.site, options)) };
  }

  for (const [at, { name, viewport }] of sizes.entries()) {
    test(`with anomalies is open to all on ${name}`, async (t) => {
      const tab = await signedIn(t, { viewport, colorScheme: at === 0 ? 'dark' : 'light' });
      await tab.page.locator('.anomalies .causes a').first().waitFor();
      await assertReadable(tab, 'the overview');
      await assertOpenToAll(tab.page, 'the overview');
      assert.deepEqual(realTroubles(tab), []);
    });
  }

  test('an anomaly links to its cause: a change, or a webhook', async (t) => {
    const { page, hook } = await signedIn(t);
    const anomalies = page.getByRole('region', { name: 'What stands out' });
    const errors = anomalies.getByRole('listitem').filter({ hasText: '60 server errors' });
    await errors.getByRole('link', { name: '/shop inserted' }).click();
    await heading(page, 'History of a page');
    await goTo(page, '#/', 'Overview');
    await errors.getByRole('link', { name: 'Changes of this time' }).click();
    await page.waitForURL(/history\?from=/);
    await goTo(page, '#/', 'Overview');
    // A later attempt of the server's own may stand out in a minute that does not follow.
    const failed = anomalies.getByRole('listitem').filter({ hasText: 'failed deliveries' }).first();
    await failed.getByRole('link', { name: 'Partner' }).click();
    await page.waitForURL(new RegExp(`#/webhooks/${hook}`));
  });

  test('anomalies are spans of points: errors by share, slowness by what is usual', () => {
    const point = (minute: number, more: object) => ({
      time: new Date(Date.UTC(2026, 0, 1, 0, minute)).toISOString(),
      ...{ requests: 100, status: {}, sources: { disk: 0, rule: 0, none: 0, svc1: 0 } },
      ...{ p50_ms: 5, p99_ms: 50, cache: { hits: 0, requests: 0 }, bytes: 0 },
      hooks: { completed: 0, failed: 0 },
      ...more,
    });
    const points = [
      point(0, {}),
      point(1, { status: { '5xx': 4 } }),
      point(2, { status: { '5xx': 5 } }),
      point(3, { status: { '5xx': 7 }, p99_ms: 900 }),
      point(4, { p99_ms: 600 }),
      point(5, {}),
      point(6, { requests: 2, status: { '5xx': 2 } }),
    ];
    const found = anomaliesOf({ from: '', until: '', step_ms: minuteMs, points });
    assert.deepEqual(
      found.map(({ kind, from, until, value }) => [
        ...[kind, from.slice(11, 16), until.slice(11, 16), value],
      ]),
      [
        ['errors', '00:02', '00:04', 12],
        ['slow', '00:03', '00:05', 900],
      ],
    );
  });
});
