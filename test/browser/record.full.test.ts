import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { startSite } from '../harness.ts';
import { assertReadable, oneBrowser, visitGeneric } from './browser.ts';
import { assertOpenToAll } from './axe.ts';
import { askHost, letters, letterSite } from './form-rig.ts';

const openTab = oneBrowser();
const { site, host } = letterSite();

const letter = {
  name: 'Ada',
  email: 'ada@example.org',
  lamp: 'Tern',
  finish: 2,
  wanted_on: '2026-12-24',
  gift: true,
  message: 'One, please.',
  rooms: ['desk'],
  guests: ['Grace'],
  address: { street: 'Dyke 1', city: 'Creek End', floor: 2 },
  terms: true,
  other: 'kept',
};

async function insertLetter(more: object = {}): Promise<string> {
  const data = await askHost(host(), 'letters.insert', { ...letter, ...more });
  return (data as { id: string }).id;
}

suite('a page that edits a record', () => {
  for (const path of ['/edit', '/ws/edit']) {
    test(`at ${path} reads the record first, and sends only the changed fields`, async (t) => {
      const id = await insertLetter();
      const tab = await openTab(t);
      const { page } = tab;
      const sent: unknown[] = [];
      page.on('request', (request) => {
        if (request.method() === 'POST') sent.push(request.postDataJSON());
      });
      assert.equal(await visitGeneric(tab, `${site().url}${path}/${id}`), 'rendered');
      await assertReadable(tab, 'the form');
      assert.equal(await page.getByLabel('Your name').inputValue(), 'Ada');
      assert.equal(await page.getByLabel('Finish').locator(':checked').innerText(), 'Slate');
      assert.ok(await page.getByRole('checkbox', { name: 'desk' }).isChecked());
      assert.equal(await page.getByLabel('Guest', { exact: true }).inputValue(), 'Grace');
      await page.getByRole('button', { name: 'Save changes' }).click();
      await page.getByText('Nothing has changed').waitFor();
      await page.getByLabel('Your name').fill('Ada L.');
      await page.getByLabel('Street').fill('');
      await page.getByLabel('Wanted on').fill('');
      await page.getByRole('button', { name: 'Save changes' }).click();
      await page.getByText('Your changes are saved.').waitFor();
      const { seq, ...after } = (await askHost(host(), 'letters.read', { id })) as { seq: number };
      assert.equal(seq, 2);
      const { wanted_on: _day, ...rest } = letter;
      const address = { city: 'Creek End', floor: 2 };
      assert.deepEqual(after, { ...rest, id, name: 'Ada L.', address });
      if (path === '/edit') {
        const { vk, ...envelope } = sent.at(-1) as { vk: string };
        assert.match(vk, /^form:[0-9a-f]{32}$/);
        assert.deepEqual(envelope, {
          a: 'letters.edit',
          v: { id, name: 'Ada L.', wanted_on: null, address, if_seq: 1 },
        });
      }
      await page.getByLabel('Count').fill('3');
      await page.getByRole('button', { name: 'Save changes' }).click();
      await page.getByText('Your changes are saved.').waitFor();
      assert.deepEqual(tab.troubles, []);
    });
  }

  test('shows the changes of another user field by field, and saves the choice', async (t) => {
    const id = await insertLetter();
    const tab = await openTab(t);
    const { page } = tab;
    await visitGeneric(tab, `${site().url}/edit/${id}`);
    await askHost(host(), 'letters.edit', { id, name: 'Grace', message: 'Two.', finish: 1 });
    await page.getByLabel('Your name').fill('Ada L.');
    await page.getByLabel('Message').fill('Three.');
    await page.getByLabel('Count').fill('4');
    await page.getByRole('button', { name: 'Save changes' }).click();
    const box = page.getByRole('alert');
    await box.getByText('Somebody else has changed this record').waitFor();
    assert.deepEqual(await box.locator('legend').allInnerTexts(), [
      'Your name',
      'Finish',
      'Message',
    ]);
    const name = box.getByRole('group', { name: 'Your name' });
    assert.deepEqual(await name.locator('label').allInnerTexts(), [
      'Yours: Ada L.',
      'Stored now: Grace',
    ]);
    const unchanged = (await askHost(host(), 'letters.read', { id })) as { name: string };
    assert.equal(unchanged.name, 'Grace');
    await assertOpenToAll(page, 'the choice');
    // Both have changed the name: it needs a choice, the finish has theirs.
    await box.getByRole('button', { name: 'Use these values' }).click();
    await box.getByText('Both of you have changed this field').first().waitFor();
    await name.getByLabel('Yours').check();
    await box.getByRole('group', { name: 'Message' }).getByLabel('Stored now').check();
    await box.getByRole('button', { name: 'Use these values' }).click();
    await page.getByText('The form has the values that you have chosen').waitFor();
    assert.equal(await page.getByLabel('Message').inputValue(), 'Two.');
    await page.getByRole('button', { name: 'Save changes' }).click();
    await page.getByText('Your changes are saved.').waitFor();
    const after = (await askHost(host(), 'letters.read', { id })) as Record<string, unknown>;
    assert.deepEqual(
      [after.name, after.message, after.finish, after.count],
      ['Ada L.', 'Two.', 1, 4],
    );
  });

  test('says that the record does not exist, or that the address names none', async (t) => {
    const tab = await openTab(t);
    const { page } = tab;
    assert.equal(await visitGeneric(tab, `${site().url}/edit/none`), 'rendered');
    await page.getByText('This record does not exist, or was deleted.').waitFor();
    assert.equal(await visitGeneric(tab, `${site().url}/edit/`), 'rendered');
    await page.getByText('The address names no record').waitFor();
    const id = await insertLetter();
    assert.equal(await visitGeneric(tab, `${site().url}/edit/?id=${id}`), 'rendered');
    assert.equal(await page.getByLabel('Your name').inputValue(), 'Ada');
  });
});

suite('a page that deletes a record', () => {
  test('shows the record first, and deletes it on confirmation', async (t) => {
    const id = await insertLetter({ message: '<img src=x onerror="window.hit = true">' });
    const tab = await openTab(t, { locale: 'en-GB' });
    const { page } = tab;
    assert.equal(await visitGeneric(tab, `${site().url}/delete/${id}`), 'rendered');
    await assertReadable(tab, 'the record');
    const shown = await page.locator('dl').first().innerText();
    for (const part of [
      'Your name\nAda',
      'Slate',
      'December 24, 2026',
      'Yes',
      '<img src=x',
      'Creek End',
    ]) {
      assert.ok(shown.includes(part), `${part} in ${shown}`);
    }
    await page.getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('status').getByText('Deleted.').waitFor();
    assert.equal(await askHost(host(), 'letters.read', { id }), undefined);
    assert.equal(await page.evaluate('window.hit'), undefined);
    assert.deepEqual(tab.troubles, []);
  });
});

suite('a data host that refuses a record', () => {
  const cases = [
    {
      what: 'is down',
      status: 0,
      error: undefined,
      says: /^The data host localhost:\d+ does not answer\. Your input is kept/,
    },
    { what: 'has a proxy before it', status: 502, error: undefined, says: /does not answer/ },
    { what: 'answers nonsense', status: 200, error: undefined, says: /has refused this/ },
    {
      what: 'refuses',
      status: 403,
      error: { code: 'forbidden', message: 'Not on Sundays.', id: 'id-to-quote' },
      says: /^The data host says: Not on Sundays\.\s*If you report this, quote id-to-quote/,
    },
    {
      what: 'names a field',
      status: 400,
      error: { code: 'invalid', message: 'There is no such address.', field: 'email' },
      says: /Email: There is no such address\./,
    },
    {
      what: 'names a field in a field',
      status: 400,
      error: { code: 'invalid', message: 'Nobody lives there.', field: 'address.city' },
      says: /City: Nobody lives there\./,
    },
    {
      what: 'names a field that the form does not have',
      status: 400,
      error: { code: 'invalid', message: 'Too late.', field: 'when' },
      says: /^The data host says: Too late\./,
    },
  ];
  test('is reported; nothing is lost, and the record is sent again under the same vk', async (t) => {
    const tab = await openTab(t);
    const { page } = tab;
    await visitGeneric(tab, `${site().url}/new`);
    await page.getByLabel('Your name').fill('Ada');
    await page.getByLabel('Email').fill('ada@example.org');
    await page.getByRole('radio', { name: 'Tern' }).check();
    await page.getByLabel('Message').fill('One, please.');
    await page.getByLabel('City').fill('Creek End');
    await page.getByLabel('I have read').check();
    const keys = new Set<string>();
    for (const { what, status, error, says } of cases) {
      await page.route(`${host().url}/`, async (route) => {
        keys.add((route.request().postDataJSON() as { vk: string }).vk);
        const headers = { 'access-control-allow-origin': '*' };
        if (status === 0) await route.abort('connectionrefused');
        else if (error === undefined) await route.fulfill({ status, headers, body: '<h1>No' });
        else await route.fulfill({ status, headers, json: { r: 'letters.insert', error } });
      });
      await page.getByRole('button', { name: 'Save' }).click();
      const alert = page.getByRole('alert').filter({ hasText: says });
      await alert.waitFor();
      if (error?.field === 'email' || error?.field === 'address.city') {
        const label = error.field === 'email' ? 'Email' : 'City';
        assert.equal(await page.getByLabel(label).getAttribute('aria-invalid'), 'true', what);
      }
      assert.equal(await page.getByLabel('Your name').inputValue(), 'Ada', what);
      await page.unroute(`${host().url}/`);
    }
    assert.equal(keys.size, 1);
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved. Thank you.').waitFor();
  });

  test('that is down while a record is read can be tried again', async (t) => {
    const id = await insertLetter();
    const tab = await openTab(t);
    const { page } = tab;
    await page.route(`${host().url}/`, (route) => route.abort('connectionrefused'));
    await visitGeneric(tab, `${site().url}/edit/${id}`);
    await page.getByText('does not answer').waitFor();
    await page.unroute(`${host().url}/`);
    await page.getByRole('button', { name: 'Try again' }).click();
    assert.equal(await page.getByLabel('Your name').inputValue(), 'Ada');
  });
});

suite('a form whose rule changes while it is filled in', () => {
  test('is rebuilt and keeps the values that were filled in', async (t) => {
    const own = await startSite(t, {
      ini: '[table.letters]\nschema = letters.json\n',
      files: { 'letters.json': JSON.stringify(letters) },
    });
    const enginedata = { submit: { url: host().url, a: 'letters.insert' }, heading: 'Before' };
    const { data } = await own.call('svc1.userinterface.insert', {
      path: '/new',
      kind: 'insert-record',
      table: 'letters',
      engine: 'form',
      enginedata,
    });
    assert.deepEqual(data.unknowns, []);
    const tab = await openTab(t);
    const { page } = tab;
    await visitGeneric(tab, `${own.url}/new?_live`);
    await page.locator('html[data-waymark-live=on]').waitFor({ state: 'attached' });
    await page.getByLabel('Your name').fill('Ada');
    await own.call('svc1.userinterface.edit', {
      id: data.id,
      enginedata: { ...enginedata, heading: 'After', fields: ['message', 'name'] },
    });
    await page.getByRole('heading', { name: 'After' }).waitFor();
    assert.equal(await page.getByLabel('Your name').inputValue(), 'Ada');
    assert.deepEqual(await page.locator('label').allInnerTexts(), ['Message', 'Your name']);
  });
});
