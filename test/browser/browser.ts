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

/** A page in a context of its own, with all that went wrong in it so far. */
export interface Tab {
  readonly page: Page;
  /** Console errors and warnings, uncaught exceptions, failed requests; a line each. */
  readonly troubles: readonly string[];
}

/** The sizes at which a page has to look right: a phone and a desktop. */
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
  // Whatever a page links to, nothing leaves the machine.
  '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1',
];

/** The browser of this process, which files that are run together share; closed behind the last. */
let launched: Promise<Browser> | undefined;
let sharing = 0;

async function launch(): Promise<Browser> {
  const { executablePath, env } = await unpackChromium();
  return chromium.launch({ executablePath, env, args });
}

/**
 * Has a browser started before a file's tests; what it returns opens an empty page for a test.
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
    context.setDefaultTimeout(20_000);
    const page = await context.newPage();
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
    troubles.push(`failed: ${request.url()}: ${request.failure()?.errorText ?? ''}`);
  });
  page.on('response', (response) => {
    const { pathname } = new URL(response.url());
    if (response.status() >= 400) troubles.push(`status ${response.status()}: ${pathname}`);
  });
  return troubles;
}

/** Goes to a URL and waits until it has loaded; an address without an answer fails. */
export async function visit({ page }: Tab, url: string): Promise<Response> {
  const response = await page.goto(url);
  assert.ok(response !== null, url);
  return response;
}

/** The same for a generic page; resolves when it has `rendered`, or else has `failed`. */
export async function visitGeneric(tab: Tab, url: string): Promise<'rendered' | 'failed'> {
  await visit(tab, url);
  return renderState(tab);
}

/** Resolves when a generic page is done. */
export async function renderState({ page }: Tab): Promise<'rendered' | 'failed'> {
  const element = page.locator('[data-waymark-state]');
  await element.waitFor({ state: 'attached' });
  const state = await element.getAttribute('data-waymark-state');
  assert.ok(state === 'rendered' || state === 'failed');
  return state;
}

/**
 * What everybody may expect of a page: a title, a language, a heading in sight, nothing that sticks
 * out at the side.
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
