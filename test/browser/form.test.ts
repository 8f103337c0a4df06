import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { assertReadable, oneBrowser, visitGeneric, type Tab } from './browser.ts';
import { askHost, letterSite } from './form-rig.ts';

const openTab = oneBrowser();
const { site, host } = letterSite();

/** Fills in the required fields of a letter. */
async function fillIn({ page }: Tab): Promise<void> {
  await page.getByLabel('Your name').fill('Ada');
  await page.getByLabel('Email').fill('ada@example.org');
  await page.getByRole('radio', { name: 'Tern' }).check();
  await page.getByLabel('Message').fill('One, please.\nSoon.');
  await page.getByLabel('I have read the small print').check();
}

async function newestLetter(): Promise<Record<string, unknown>> {
  const { rows } = (await askHost(host(), 'letters.list', {})) as {
    rows: Record<string, unknown>[];
  };
  return rows[0] ?? assert.fail('there is no letter');
}

suite('a form', () => {
  for (const path of ['/new', '/ws/new']) {
    test(`at ${path} sends the record to the data host as it was filled in`, async (t) => {
      const tab = await openTab(t, { timezoneId: 'Europe/Berlin' });
      const { page } = tab;
      assert.equal(await visitGeneric(tab, site().url + path), 'rendered');
      await assertReadable(tab, 'the form');
      await fillIn(tab);
      await page.getByLabel('Finish').selectOption('Slate');
      assert.equal(await page.getByLabel('Count').inputValue(), '1');
      await page.getByLabel('Price').fill('14.5');
      await page.getByLabel('Wanted on').fill('2026-12-24');
      await page.getByLabel('Call at').fill('2026-12-01T09:30');
      await page.getByLabel('Gift').check();
      await page.getByRole('checkbox', { name: 'wall' }).check();
      await page.getByRole('checkbox', { name: 'desk' }).check();
      await page.getByRole('button', { name: 'Add: Guest' }).click();
      await page.keyboard.type('Grace');
      await page.getByRole('button', { name: 'Add: Guest' }).click();
      await page.keyboard.type('Edsger');
      await page.getByRole('button', { name: 'Remove: Guest' }).first().click();
      await page.getByLabel('City').fill('Creek End');
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByRole('status').getByText('Saved. Thank you.').waitFor();
      const { id, seq, ...letter } = await newestLetter();
      assert.equal(seq, 1);
      assert.deepEqual(letter, {
        name: 'Ada',
        email: 'ada@example.org',
        lamp: 'Tern',
        finish: 2,
        count: 1,
        price: 14.5,
        wanted_on: '2026-12-24',
        call_at: '2026-12-01T08:30:00.000Z',
        gift: true,
        message: 'One, please.\nSoon.',
        rooms: ['desk', 'wall'],
        guests: ['Edsger'],
        address: { city: 'Creek End' },
        terms: true,
      });
      const next = page.getByRole('link', { name: 'Change it' });
      assert.equal(await next.getAttribute('href'), `${site().url}/edit/${String(id)}`);
      assert.deepEqual(tab.troubles, []);
    });
  }

  test('shows errors at each field, and is sent once it is valid', async (t) => {
    const tab = await openTab(t);
    const { page } = tab;
    await visitGeneric(tab, `${site().url}/new`);
    const before = await askHost(host(), 'letters.list', {});
    const name = page.getByLabel('Your name');
    await page.getByLabel('Email').fill('ada');
    await page.getByLabel('Code').fill('abc');
    await page.getByLabel('Price').fill('0');
    await page.getByLabel('Street').fill('Dyke 1');
    await page.getByRole('button', { name: 'Save' }).click();
    const list = page.getByRole('alert');
    assert.equal(await page.evaluate('document.activeElement.role'), 'alert');
    const complaints = await list.getByRole('link').allInnerTexts();
    assert.deepEqual(
      complaints.map((text) => text.split(':')[0]),
      [
        'Your name',
        'Email',
        'Lamp',
        'Price',
        'Code',
        'Message',
        'City',
        'I have read the small print',
      ],
    );
    for (const label of ['Your name', 'Email', 'Price', 'Code', 'City']) {
      const field = page.getByLabel(label);
      assert.equal(await field.getAttribute('aria-invalid'), 'true', label);
      const described = (await field.getAttribute('aria-describedby')) ?? '';
      const errorId = described.split(' ').at(-1) ?? '';
      const text = await page.locator(`#${errorId}`).innerText();
      assert.ok(complaints.includes(`${label}: ${text}`), `${label}: ${text}`);
    }
    assert.equal(await page.getByLabel('Street').getAttribute('aria-invalid'), null);
    assert.deepEqual(await askHost(host(), 'letters.list', {}), before);

    await list.getByRole('link', { name: 'Your name' }).click();
    await page.keyboard.type('Ada');
    assert.equal(await name.getAttribute('aria-invalid'), null);
    await fillIn(tab);
    await page.getByLabel('Code').fill('TRN-1');
    await page.getByLabel('Price').fill('');
    await page.getByLabel('Street').fill('');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved. Thank you.').waitFor();
    const { code, address, price } = await newestLetter();
    assert.deepEqual([code, address, price], ['TRN-1', undefined, undefined]);
    assert.deepEqual(tab.troubles, []);
  });

  test('can be filled in and sent by keyboard alone', async (t) => {
    const tab = await openTab(t);
    const { page } = tab;
    await visitGeneric(tab, `${site().url}/new`);
    const { keyboard } = page;
    await keyboard.press('Tab');
    await keyboard.type('Grace');
    await keyboard.press('Tab');
    await keyboard.type('grace@example.org');
    await keyboard.press('Tab');
    await keyboard.press('Space');
    await page.getByLabel('Message').focus();
    await keyboard.type('Hello');
    await page.getByLabel('I have read the small print').focus();
    await keyboard.press('Space');
    await keyboard.press('Enter');
    await page.getByText('Saved. Thank you.').waitFor();
    const { name, lamp } = await newestLetter();
    assert.deepEqual([name, lamp], ['Grace', 'Tern']);
    await keyboard.press('Tab');
    await keyboard.press('Tab');
    assert.equal(await page.evaluate('document.activeElement.textContent'), 'Add another');
    await keyboard.press('Enter');
    assert.equal(await page.getByLabel('Your name').inputValue(), '');
    assert.equal(
      await page.evaluate('document.activeElement.getAttribute("autocomplete")'),
      'name',
    );
  });

  test('starts with the values of the address', async (t) => {
    const tab = await openTab(t);
    const { page } = tab;
    const query = 'name=Ada&lamp=Heron&count=3&other=1&__proto__=2&email=%22%3E%3Cimg%3E';
    await visitGeneric(tab, `${site().url}/new?${query}`);
    assert.equal(await page.getByLabel('Your name').inputValue(), 'Ada');
    assert.ok(await page.getByRole('radio', { name: 'Heron' }).isChecked());
    assert.equal(await page.getByLabel('Count').inputValue(), '3');
    assert.equal(await page.getByLabel('Email').inputValue(), '"><img>');
    assert.equal(await page.locator('img').count(), 0);
  });
});

suite('a form that is sent more than once', () => {
  const rows = async () =>
    ((await askHost(host(), 'letters.list', {})) as { rows: readonly object[] }).rows.length;

  test('stores one record after a double click', async (t) => {
    const tab = await openTab(t);
    const { page } = tab;
    await visitGeneric(tab, `${site().url}/new`);
    await fillIn(tab);
    const before = await rows();
    await page.getByRole('button', { name: 'Save' }).dblclick();
    await page.getByText('Saved. Thank you.').waitFor();
    assert.equal(await rows(), before + 1);
  });

  test('stores one record although the answer was lost and the page was loaded again', async (t) => {
    const tab = await openTab(t);
    const { page } = tab;
    await visitGeneric(tab, `${site().url}/new`);
    await fillIn(tab);
    const before = await rows();
    await page.route(`${host().url}/`, async (route) => {
      await route.fetch();
      await route.abort('connectionreset');
    });
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('does not answer').waitFor();
    await page.unroute(`${host().url}/`);
    await page.reload();
    await page.getByText('it is stored only once').waitFor();
    assert.equal(await page.getByLabel('Your name').inputValue(), 'Ada');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved. Thank you.').waitFor();
    assert.equal(await rows(), before + 1);
    // A new form is another record.
    await page.reload();
    assert.equal(await page.getByLabel('Your name').inputValue(), '');
  });

  test('says that the first attempt is stored if the values have changed since', async (t) => {
    const tab = await openTab(t);
    const { page } = tab;
    await visitGeneric(tab, `${site().url}/new`);
    await fillIn(tab);
    const before = await rows();
    await page.route(`${host().url}/`, async (route) => {
      await route.fetch();
      await route.abort('connectionreset');
    });
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('does not answer').waitFor();
    await page.unroute(`${host().url}/`);
    await page.getByLabel('Your name').fill('Grace');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('What you sent first has been stored').waitFor();
    assert.equal(await rows(), before + 1);
    await page.getByRole('button', { name: 'Send as another record' }).click();
    await page.getByText('Saved. Thank you.').waitFor();
    assert.equal(await rows(), before + 2);
  });
});
