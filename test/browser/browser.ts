import assert from 'node:assert/strict';
import { after, before, type TestContext } from 'node:test';
import {
  chromium,
  type Browser,
  type BrowserContextOptions,
  type Page,
  type Response,
} from 'playwright-core';
import { unpackChromium } from './packaged-chromium.ts';
import { slowDown } from './slow-browser.ts';

/** A page in a browser context of its own, with its errors so far. */
export interface Tab {
  readonly page: Page;
  /** Console errors and warnings, uncaught exceptions, failed requests; a line each. */
  readonly troubles: readonly string[];
}

/** The sizes that pages have to fit: a phone and a desktop. */
export const sizes = [
  { name: 'a phone', viewport: { width: 390, height: 844 } },
  { name: 'a desktop', viewport: { width: 1280, height: 800 } },
] as const;

const args = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--disable-dev-shm-usage',
  // No request leaves the machine, whatever a page links to.
  '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1',
];

/** The browser of this process. The test files share it; it is closed after the last one. */
let launched: Promise<Browser> | undefined;
let sharing = 0;

/** Starts Chromium, for a command; tests share one by `oneBrowser`. */
export async function launch(): Promise<Browser> {
  const { executablePath, env } = await unpackChromium();
  return chromium.launch({ executablePath, env, args });
}

/**
 * Starts the browser before the tests of a file; returns a function that opens an empty page.
 */
export function oneBrowser(): (t: TestContext, options?: BrowserContextOptions) => Promise<Tab> {
  let browser: Browser | undefined;
  sharing += 1;
  before(async () => {
    browser = await (launched ??= launch());
  });
  after(async () => {
    sharing -= 1;
    if (sharing > 0) return;
    launched = undefined;
    await browser?.close();
  });
  return async (t, options = {}) => {
    assert.ok(browser !== undefined);
    const context = await browser.newContext({ reducedMotion: 'reduce', ...options });
    t.after(() => context.close());
    context.setDefaultTimeout(60_000);
    const page = await context.newPage();
    await slowDown(page);
    return { page, troubles: watch(page) };
  };
}

function watch(page: Page): readonly string[] {
  const troubles: string[] = [];
  page.on('console', (message) => {
    const type = message.type();
    if (type === 'error' || type === 'warning') troubles.push(`${type}: ${message.text()}`);
  });
  page.on('pageerror', (error) => troubles.push(`uncaught: ${error.message}`));
  page.on('requestfailed', (request) => {
    const reason = request.failure()?.errorText ?? '';
    // A visitor who goes on to another page leaves scripts behind that have not loaded.
    if (reason === 'net::ERR_ABORTED' && request.resourceType() === 'script') return;
    troubles.push(`failed: ${request.url()}: ${reason}`);
  });
  page.on('response', (response) => {
    const { pathname } = new URL(response.url());
    if (response.status() >= 400) troubles.push(`status ${response.status()}: ${pathname}`);
  });
  return troubles;
}

/** Goes to a URL and waits until it has loaded; fails without a response. */
export async function visit({ page }: Tab, url: string): Promise<Response> {
  const response = await page.goto(url);
  assert.ok(response !== null, url);
  return response;
}

/** The same for a generic page; resolves once it has `rendered` or `failed`. */
export async function visitGeneric(tab: Tab, url: string): Promise<'rendered' | 'failed'> {
  await visit(tab, url);
  return renderState(tab);
}

/** Resolves once a generic page has rendered or failed. */
export async function renderState({ page }: Tab): Promise<'rendered' | 'failed'> {
  const element = page.locator('[data-waymark-state]');
  await element.waitFor({ state: 'attached' });
  const state = await element.getAttribute('data-waymark-state');
  assert.ok(state === 'rendered' || state === 'failed');
  return state;
}

/**
 * Checks what every page must have: a title, a language, a visible heading, and no horizontal
 * scrolling.
 */
export async function assertReadable({ page }: Tab, what: string): Promise<void> {
  assert.match(await page.title(), /\S/, `${what} has a title`);
  const lang = await page.locator('html').getAttribute('lang');
  assert.match(lang ?? '', /^[a-z]{2}/, `${what} has a language`);
  assert.ok(await page.locator('h1').first().isVisible(), `${what} has a heading`);
  const [wide = 0, room = 0] = await page.evaluate<number[]>(
    '[document.documentElement.scrollWidth, document.documentElement.clientWidth]',
  );
  assert.ok(wide <= room, `${what} is ${wide} wide, there is room for ${room}`);
}
