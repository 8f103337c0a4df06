import assert from 'node:assert/strict';
import { suite, test, type TestContext } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import { cleaningAfterAll } from '../folder.ts';
import { startSite, type TestSite } from '../harness.ts';
import { startReceiver, type TestReceiver } from '../modules/webhooks/receiver.ts';
import { oneBrowser } from './browser.ts';
import { heading, openConsole, realTroubles, type ConsoleTab } from './console-tab.ts';

const openTab = oneBrowser();

interface Shared {
  readonly site: TestSite;
  readonly receiver: TestReceiver;
}

async function start(): Promise<Shared> {
  const cleaning = cleaningAfterAll();
  const site = await startSite(cleaning, {
    ini: '[webhook]\nallow_private = 127.0.0.0/8\nretry = 1h\n',
    rules: [
      { path: '/offers/', kind: 'content', content: '<h1>Offers</h1>' },
      { path: '/offers/spring', kind: 'content', content: '<h1>Spring</h1>' },
      ...Array.from({ length: 9 }, (_, at) => ({
        ...{ path: `/many/${at}`, kind: 'content', content: `${at}` },
      })),
    ],
  });
  const receiver = await startReceiver(cleaning);
  await site.call('svc1.webhook.insert', {
    ...{ name: 'Partner', event: ['sale.completed'], url: receiver.url },
  });
  return { site, receiver };
}

/** Moves the focus by the Tab key until an element has it. */
async function tabTo(page: Page, target: Locator, key = 'Tab'): Promise<void> {
  await target.waitFor();
  for (let presses = 0; presses < 120; presses += 1) {
    const isThere = await target.evaluate(
      (element) => Reflect.get(element.getRootNode(), 'activeElement') === element,
    );
    if (isThere) return;
    await page.keyboard.press(key);
  }
  assert.fail('Tab does not reach the element');
}

/** Opens a screen by `g` and a letter. */
async function press(page: Page, letter: string, title: string): Promise<void> {
  await page.keyboard.press('g');
  await page.keyboard.press(letter);
  await heading(page, title);
}

/** Runs a command of the palette. */
async function command(page: Page, text: string, name: string): Promise<void> {
  await page.keyboard.press('Control+k');
  await page.locator('.palette input:focus').waitFor();
  await page.keyboard.type(text);
  await page.getByRole('option', { name, selected: true }).waitFor();
  await page.keyboard.press('Enter');
}

suite('by keyboard alone', () => {
  const shared = start();

  async function signedIn(t: TestContext): Promise<ConsoleTab & Shared> {
    const all = await shared;
    return { ...all, ...(await openConsole(t, openTab, all.site)) };
  }

  test('a page is made and previewed', async (t) => {
    const { page, site, troubles } = await signedIn(t);
    await command(page, 'new page', 'New page');
    await heading(page, 'New page');
    await tabTo(page, page.getByLabel('Path', { exact: true }));
    await page.keyboard.press('Control+a');
    await page.keyboard.type('/made');
    await tabTo(page, page.getByLabel('Content', { exact: true }));
    // The editor closes the element itself.
    await page.keyboard.type('<h1>Made here');
    await page.frameLocator('.preview').getByText('Made here').waitFor();
    await page.keyboard.press('Control+s');
    await heading(page, '/made');
    assert.equal(await (await fetch(`${site.url}/made`)).text(), '<h1>Made here</h1>');
    assert.deepEqual(realTroubles({ troubles }), []);
  });

  test('a page is found and changed, with a mistake named while one types', async (t) => {
    const { page, site } = await signedIn(t);
    await press(page, 'p', 'Pages');
    await page.keyboard.press('/');
    await page.keyboard.type('Spring');
    await page.keyboard.press('Enter');
    const row = page.getByRole('link', { name: '/offers/spring' });
    await tabTo(page, row);
    await page.keyboard.press('Enter');
    await heading(page, '/offers/spring');
    await tabTo(page, page.getByLabel('Status', { exact: true }));
    await page.keyboard.type('999');
    await page.locator('.problem', { hasText: 'httpresponse' }).waitFor();
    await page.keyboard.press('Control+a');
    await page.keyboard.type('203');
    await page.keyboard.press('Control+s');
    await page.getByText('Saved', { exact: true }).waitFor();
    assert.equal((await fetch(`${site.url}/offers/spring`)).status, 203);
  });

  test('an address is explained', async (t) => {
    const { page } = await signedIn(t);
    await command(page, '/none', 'Explain /none');
    await heading(page, 'Explain');
    await page.locator('.verdict.none').waitFor();
  });

  test('pages are found by their path', async (t) => {
    const { page } = await signedIn(t);
    await page.keyboard.press('Control+k');
    await page.locator('.palette input:focus').waitFor();
    await page.keyboard.type('/many/');
    const pages = page.getByRole('option', { name: /^\/many\// });
    await pages.nth(7).waitFor();
    assert.equal(await pages.count(), 8);
    await page.keyboard.type('3');
    await pages.nth(1).waitFor({ state: 'detached' });
    const found = page.getByRole('option', { name: '/many/3 content' });
    await page.keyboard.press('ArrowUp');
    await found.and(page.locator('[aria-selected=true]')).waitFor();
    await page.keyboard.press('Enter');
    await heading(page, '/many/3');
  });

  test('a change is reverted', async (t) => {
    const { page, site } = await signedIn(t);
    const rule = { path: '/undone', kind: 'content', content: 'one' };
    const { id } = (await site.call('svc1.userinterface.insert', rule)).data;
    await site.call('svc1.userinterface.edit', { id, content: 'two' });
    await press(page, 'h', 'History');
    await tabTo(page, page.locator('.changes .edit a').first());
    await page.keyboard.press('Enter');
    await heading(page, 'History of a page');
    await tabTo(page, page.locator('.version-list a').last());
    await page.keyboard.press('Enter');
    await tabTo(page, page.getByRole('button', { name: 'Restore this version' }));
    await page.keyboard.press('Enter');
    await tabTo(page, page.getByRole('button', { name: 'Revert 1 change' }));
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Revert this revert' }).waitFor();
    assert.equal(await (await fetch(`${site.url}/undone`)).text(), 'one');
  });

  test('a delivery is sent again', async (t) => {
    const { page, site, receiver } = await signedIn(t);
    await site.call('svc1.event.insert', { type: 'sale.completed', data: { id: 'S-1' } });
    await receiver.until(1);
    await press(page, 'w', 'Webhooks');
    await tabTo(page, page.getByRole('link', { name: 'Partner' }));
    await page.keyboard.press('Enter');
    await heading(page, 'Partner');
    await tabTo(page, page.locator('.attempt').first());
    await page.keyboard.press('Enter');
    await tabTo(page, page.getByRole('button', { name: 'Send again' }));
    await page.keyboard.press('Enter');
    await receiver.until(2);
  });
});

suite('walks', () => {
  const shared = start();

  /** Counts the clicks of the pointer in a tab from now on; prints them, and checks their number. */
  async function countClicks(t: TestContext, page: Page) {
    await page.evaluate(`window.clicks = 0;
      addEventListener('click', ({ detail }) => { if (detail > 0) window.clicks += 1; }, true)`);
    return async (walk: string, most: number): Promise<void> => {
      const clicks = await page.evaluate<number>('window.clicks');
      t.diagnostic(`${walk}: ${clicks} clicks`);
      assert.ok(clicks <= most, `${clicks} clicks`);
    };
  }

  async function signedIn(t: TestContext) {
    const all = await shared;
    const tab = await openConsole(t, openTab, all.site);
    return { ...all, ...tab, clicked: await countClicks(t, tab.page) };
  }

  test('move a page', async (t) => {
    const { page, site, clicked } = await signedIn(t);
    await page.getByRole('link', { name: 'Pages', exact: true }).click();
    await page.locator('.row', { hasText: 'offers/' }).click();
    await page.locator('.row', { hasText: 'spring' }).click();
    await heading(page, '/offers/spring');
    await page.getByLabel('Path', { exact: true }).click();
    await page.keyboard.press('Control+a');
    await page.keyboard.type('/sale/spring');
    await page.getByRole('button', { name: 'Save' }).click();
    await heading(page, '/sale/spring');
    assert.equal((await fetch(`${site.url}/sale/spring`)).status, 200);
    await clicked('move a page', 5);
  });

  test('why is this 404', async (t) => {
    const { page, clicked } = await signedIn(t);
    await page.getByRole('link', { name: 'Explain' }).click();
    await page.getByLabel('URL or path').click();
    await page.keyboard.type('/offers/sprnig');
    await page.keyboard.press('Enter');
    await page.locator('.verdict.none').waitFor();
    assert.equal(await page.locator('.precedence > li').count(), 4);
    // The keyboard is still in the field, for the next question.
    const focused = await page.evaluate('document.activeElement.getAttribute("aria-label")');
    assert.equal(focused, 'URL or path');
    await clicked('why is this 404', 2);
  });

  test('the partner says nothing arrived', async (t) => {
    const { page, site, receiver, clicked } = await signedIn(t);
    receiver.answer = () => (response) => response.writeHead(503).end('maintenance');
    const before = receiver.got.length;
    await site.call('svc1.event.insert', { type: 'sale.completed', data: { id: 'S-9' } });
    await receiver.until(before + 1);
    for (let state = ''; state !== 'failing';)
      state = (await site.call('svc1.webhook.health', {})).data.rows[0].state;
    await page.getByRole('link', { name: 'Webhooks' }).click();
    await page.locator('.hook-card.failing').waitFor();
    await page.getByRole('link', { name: 'Partner' }).click();
    await page.locator('.attempt').first().click();
    await page.locator('.answers', { hasText: 'maintenance' }).waitFor();
    receiver.answer = () => 200;
    await page.getByRole('button', { name: 'Send again' }).click();
    await receiver.until(before + 2);
    await page.locator('.answers', { hasText: 'completed' }).waitFor();
    await clicked('the partner says nothing arrived', 4);
  });
});
