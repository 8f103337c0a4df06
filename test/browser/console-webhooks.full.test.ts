import assert from 'node:assert/strict';
import { suite, test, type TestContext } from 'node:test';
import type { Page } from 'playwright-core';
import { cleaningAfterAll } from '../folder.ts';
import { startSite, type TestSite } from '../harness.ts';
import { startReceiver, type TestReceiver } from '../modules/webhooks/receiver.ts';
import { assertOpenToAll } from './axe.ts';
import { assertReadable, oneBrowser, sizes, visit } from './browser.ts';
import { code, goTo, heading, hostile, openConsole, realTroubles } from './console-tab.ts';

const openTab = oneBrowser();
const ini = '[webhook]\nallow_private = 127.0.0.0/8\nretry = 1h\n';

interface Shared {
  readonly site: TestSite;
  readonly receiver: TestReceiver;
  /** A hook with a completed and a failed delivery. */
  readonly hook: string;
}

async function start(): Promise<Shared> {
  const cleaning = cleaningAfterAll();
  const site = await startSite(cleaning, { ini });
  const receiver = await startReceiver(cleaning);
  const fields = { name: 'Shop seven', event: ['sale.completed'], url: receiver.url };
  const headers = { 'X-Shop': hostile.replaceAll(/[^\x21-\x7e]/g, ''), Authorization: 'Bearer x' };
  const { data } = await site.call('svc1.webhook.insert', { ...fields, headers });
  receiver.answer =
    ({ body }) =>
    (response) => {
      response.setHeader('X-Answer', code);
      response.writeHead(body.seq === 2 ? 500 : 200).end(hostile);
    };
  for (const id of ['S-1', hostile])
    await site.call('svc1.event.insert', { type: 'sale.completed', data: { id } });
  await receiver.until(2);
  return { site, receiver, hook: data.id };
}

/** Waits until the screen shows an attempt at a message. */
function attemptRow(page: Page, seq: number) {
  return page.locator('.attempt', {
    has: page.locator('.attempt-seq', { hasText: new RegExp(`^${seq}$`) }),
  });
}

suite('the webhooks of the console', () => {
  const shared = start();

  async function signedIn(t: TestContext, options: object = {}) {
    const { site, receiver, hook } = await shared;
    return { ...(await openConsole(t, openTab, site, options)), receiver, hook };
  }

  for (const [at, { name, viewport }] of sizes.entries()) {
    const colorScheme = at === 0 ? 'light' : 'dark';
    test(`are open to all on ${name}, in ${colorScheme}, without errors`, async (t) => {
      const tab = await signedIn(t, { viewport, colorScheme });
      const { page, hook } = tab;
      for (const [hash, title, element] of [
        ['#/webhooks', 'Webhooks', '.hook-card'],
        [`#/webhooks/${hook}`, 'Shop seven', '.attempt'],
        [`#/webhooks/${hook}/edit`, 'Edit', '.pair'],
        ['#/webhooks/new', 'New webhook', '.pair'],
        ['#/webhooks/send', 'Send an event', '.field'],
      ] as const) {
        await goTo(page, hash, title);
        await page.locator(element).first().waitFor();
        await assertReadable(tab, hash);
        await assertOpenToAll(page, hash);
      }
      await goTo(page, `#/webhooks/${hook}`, 'Shop seven');
      await attemptRow(page, 2).click();
      await page.locator('.answers li').first().waitFor();
      for (const summary of await page.locator('.delivery summary').all()) await summary.click();
      await assertReadable(tab, 'a delivery');
      await assertOpenToAll(page, 'a delivery');
      assert.equal(await page.evaluate('window.hit'), undefined);
      assert.deepEqual(realTroubles(tab), []);
    });
  }

  test('a hook is made and changed by a form that says what is wrong while one types', async (t) => {
    const { page, site, receiver } = await signedIn(t);
    await goTo(page, '#/webhooks', 'Webhooks');
    await page.getByRole('link', { name: 'New webhook' }).click();
    await heading(page, 'New webhook');
    await page.getByLabel('name', { exact: true }).fill('By form');
    await page.getByRole('button', { name: '+ stock.level_changed' }).click();
    await page.getByLabel('url').fill('ftp://shop.example');
    await page.locator('.problem', { hasText: 'absolute http or https' }).waitFor();
    await page.getByLabel('url').fill(receiver.url);
    await page.locator('.problem').waitFor({ state: 'detached' });
    await page.getByLabel('Name', { exact: true }).first().fill('Host');
    await page.getByLabel('Value', { exact: true }).first().fill('x');
    await page.locator('.problem', { hasText: 'headers.Host' }).waitFor();
    await page.getByLabel('Name', { exact: true }).first().fill('X-Form');
    await page.locator('.problem').waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Save' }).click();
    await heading(page, 'The webhook is made');
    assert.match((await page.locator('.secret').textContent()) ?? '', /^whsec_/);
    await page.getByRole('link', { name: 'Open the webhook' }).click();
    await heading(page, 'By form');
    await page.getByRole('link', { name: 'Edit' }).click();
    await page.getByLabel('frequency').selectOption('batch');
    await page.getByLabel('every').fill('9 days');
    await page.locator('.problem', { hasText: 'such as 60s' }).waitFor();
    await page.getByLabel('every').fill('5m');
    await page.getByLabel('name', { exact: true }).fill('');
    await page.locator('.problem').waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Save' }).click();
    await heading(page, receiver.url);
    const { rows } = (await site.call('svc1.webhook.list', { event: 'stock.level_changed' })).data;
    const [{ name, frequency, headers, id }] = rows;
    assert.deepEqual([name, headers], [undefined, { 'X-Form': 'x' }]);
    assert.equal(frequency.every, '5m');
    await site.call('svc1.event.insert', { type: 'stock.level_changed', data: {} });
    await page.getByText('The next batch leaves in').waitFor();
    const { digest } = (await site.call('svc1.webhook.invalidate', { id })).data;
    await site.call('svc1.webhook.invalidate', { id, confirm: digest });
  });

  test('a hook is tested, paused, resumed, and gets a new secret', async (t) => {
    const { page, site, hook, receiver } = await signedIn(t);
    await goTo(page, `#/webhooks/${hook}`, 'Shop seven');
    const before = receiver.got.length;
    await page.getByRole('button', { name: 'Send a test' }).click();
    await page.getByText('A test event is on its way.').waitFor();
    await receiver.until(before + 1);
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByRole('button', { name: 'Resume' }).waitFor();
    assert.equal((await site.call('svc1.webhook.read', { id: hook })).data.active, false);
    await page.getByRole('button', { name: 'Resume' }).click();
    await page.getByRole('button', { name: 'Pause' }).waitFor();
    page.once('dialog', (dialog) => void dialog.accept());
    await page.getByRole('button', { name: 'New secret …' }).click();
    await page.getByText(/whsec_/).waitFor();
  });

  test('a failed delivery shows request, answer and countdown, and is sent again', async (t) => {
    const { page, hook, receiver } = await signedIn(t);
    await goTo(page, `#/webhooks/${hook}`, 'Shop seven');
    await page.getByLabel('Outcome').selectOption('failed');
    await attemptRow(page, 2).click();
    const delivery = page.getByRole('region', { name: 'Delivery' });
    await delivery.locator('.countdown').first().waitFor();
    assert.match((await delivery.locator('.countdown').first().textContent()) ?? '', /\d+ min|h/);
    await delivery.locator('summary').first().click();
    const request = delivery.locator('dl').first();
    assert.match(
      (await request.textContent()) ?? '',
      /Authorization\*\*\*.*webhook-signature\*\*\*/s,
    );
    await delivery.locator('.body').first().getByText('"sale.completed"').waitFor();
    await delivery.locator('.answers .body', { hasText: 'window.hit' }).first().waitFor();
    assert.equal(await page.evaluate('window.hit'), undefined);
    const before = receiver.got.length;
    await delivery.getByRole('button', { name: 'Send again' }).click();
    await page.getByText('It will be sent again.').waitFor();
    const got = await receiver.until(before + 1);
    assert.deepEqual(got.at(-1)?.bytes, got.find(({ body }) => body.seq === 2)?.bytes);
  });

  test('an event is sent from the form of its type', async (t) => {
    const { page, receiver } = await signedIn(t);
    const before = receiver.got.length;
    const sent: string[] = [];
    page.on('request', (request) => {
      if (request.url().endsWith('/event/insert')) sent.push(request.postData() ?? '');
    });
    await goTo(page, '#/webhooks/send', 'Send an event');
    await page.getByLabel('id required').fill('S-77');
    await page.getByLabel('currency').fill('nonsense');
    await page.getByRole('button', { name: 'Send', exact: true }).click();
    await page.getByText('Stored for 1 webhook.').waitFor();
    await page.getByText('do not fit the schema, and are sent anyway: currency').waitFor();
    const got = await receiver.until(before + 1);
    assert.equal(got.at(-1)?.body.data.id, 'S-77');
    await page.getByLabel('Type').fill('shop.opened');
    await page.getByLabel('Type').press('Enter');
    await page.getByText('Waymark does not know this type').waitFor();
    // Enter has chosen the type, and sent nothing of the former one.
    assert.equal(sent.length, 1);
    // The list has each type with its example, and leads to its form.
    await page.getByText('{"product":"P-7","level":3,').waitFor();
    await page.getByRole('link', { name: 'stock.level_changed' }).click();
    await page.getByLabel('product required').waitFor();
    assert.equal(await page.getByLabel('product required').inputValue(), 'P-7');
  });

  test('a partner sees by a link the deliveries of one hook, and nothing else', async (t) => {
    const { page, site, hook } = await signedIn(t);
    await goTo(page, `#/webhooks/${hook}`, 'Shop seven');
    await page.getByRole('button', { name: 'Link for the partner' }).click();
    const link = (await page.locator('.secret').textContent()) ?? '';
    assert.match(link, new RegExp(`^${site.url}/svc1/console/#/partner/${hook}\\?key=wmk_`));

    const partner = await openTab(t, { locale: 'en-GB' });
    await visit(partner, link);
    await heading(partner.page, 'Deliveries');
    assert.doesNotMatch(partner.page.url(), /wmk_/);
    await attemptRow(partner.page, 1).click();
    await partner.page.locator('.answers li').first().waitFor();
    await assertOpenToAll(partner.page, 'the view of a partner');
    assert.equal(await partner.page.getByRole('button', { name: 'Send again' }).count(), 0);
    await goTo(partner.page, '#/webhooks', 'Deliveries');
    assert.equal(await partner.page.evaluate('window.hit'), undefined);
    assert.deepEqual(realTroubles(partner), []);
    assert.doesNotMatch(site.logged(), /wmk_/, 'no log has the key');

    const { key } = (await site.call('svc1.key.list', {})).data.rows.find(
      ({ scopes }: { scopes: readonly string[] }) => scopes.includes(`verify:${hook}`),
    );
    assert.equal(key, undefined, 'the list of keys shows no key');
  });

  test('a link with the key of another user does not sign in', async (t) => {
    const { site, hook } = await shared;
    const before = (await site.call('svc1.session.list', {})).data.rows.length;
    const tab = await openTab(t, { locale: 'en-GB' });
    await visit(tab, `${site.url}/svc1/console/#/partner/${hook}?key=${site.adminKey}`);
    await tab.page.getByText('This link is not valid').waitFor();
    await heading(tab.page, 'Sign in');
    assert.doesNotMatch(tab.page.url(), /wmk_/);
    assert.equal((await site.call('svc1.session.list', {})).data.rows.length, before);
  });
});
