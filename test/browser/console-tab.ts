import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { TestContext } from 'node:test';
import type { BrowserContextOptions, Page, Route } from 'playwright-core';
import type { TestSite } from '../harness.ts';
import { visit, type oneBrowser, type Tab } from './browser.ts';

// Does nothing if the build is that of `npm ci`.
const build = fileURLToPath(new URL('../../console/build.js', import.meta.url));
const { status, stderr } = spawnSync(process.execPath, [build], { encoding: 'utf8' });
assert.equal(status, 0, stderr);

/** Texts that a browser would run if the console made HTML of them. */
export const code = '<img src=x onerror="window.hit = true">';
export const hostile = `"'><script>window.hit = true</script>${code}`;

/** A tab in which the console is signed in. */
export interface ConsoleTab extends Tab {
  readonly site: TestSite;
}

/** Opens the console of a site, and signs in with its admin key or another one. */
export async function openConsole(
  t: TestContext,
  openTab: ReturnType<typeof oneBrowser>,
  site: TestSite,
  {
    apikey = site.adminKey,
    opens = 'Overview',
    ...options
  }: { readonly apikey?: string; readonly opens?: string } & BrowserContextOptions = {},
): Promise<ConsoleTab> {
  const tab = await openTab(t, { locale: 'en-GB', ...options });
  await signIn(tab, site.url, apikey, opens);
  return { ...tab, site };
}

/** Opens the console of a server in an empty tab, and signs in, which leads to a screen. */
export async function signIn(
  tab: Tab,
  url: string,
  apikey: string,
  screen = 'Overview',
): Promise<void> {
  await visit(tab, `${url}/svc1/console/`);
  await tab.page.getByLabel('API key').fill(apikey);
  await tab.page.keyboard.press('Enter');
  await heading(tab.page, screen);
}

/**
 * The troubles of a tab without requests that the console has given up as outdated, and without the
 * messages that axe sends to all frames.
 */
export function realTroubles({ troubles }: Pick<Tab, 'troubles'>): readonly string[] {
  const isOutdated = /\/svc1\/(?:\w+\/\w+|console\/preview\.(?:html|js)): net::ERR_ABORTED$/;
  return troubles.filter((one) => !isOutdated.test(one) && !one.includes("execute 'postMessage'"));
}

/** Resolves once the screen has this heading. */
export async function heading(page: Page, name: string | RegExp): Promise<void> {
  await page.getByRole('heading', { level: 1, name }).waitFor();
}

/** Goes to a place of the console, and waits for its heading. */
export async function goTo(page: Page, hash: string, name: string | RegExp): Promise<void> {
  await page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
  await heading(page, name);
}

/**
 * Holds back the next request of an address, such as the one that saves a form, so that a test can
 * act before its answer. `requested` resolves when the page sends it; `release` lets it go.
 */
export async function holdNext(page: Page, address: string | RegExp) {
  const requested = Promise.withResolvers<undefined>();
  const released = Promise.withResolvers<undefined>();
  const hold = async (route: Route): Promise<void> => {
    requested.resolve(undefined);
    await released.promise;
    await route.continue();
  };
  await page.route(address, hold, { times: 1 });
  return {
    requested: requested.promise,
    release: () => {
      released.resolve(undefined);
    },
  };
}

/**
 * Resolves once an expression is true in a page. The policy of the console forbids the `eval` with
 * which waitForFunction looks again.
 */
export async function untilTrue(page: Page, expression: string): Promise<void> {
  await page.evaluate(`new Promise((resolve) => {
    const look = () => {
      if (${expression}) resolve();
      else requestAnimationFrame(look);
    };
    look();
  })`);
}
