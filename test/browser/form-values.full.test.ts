import assert from 'node:assert/strict';
import { suite, test, type TestContext } from 'node:test';
import { startSite } from '../harness.ts';
import { oneBrowser, visitGeneric } from './browser.ts';

const openTab = oneBrowser();

const table = {
  title: 'Order',
  type: 'object',
  properties: {
    dozens: { type: 'integer', minimum: 1, multipleOf: 5 },
    weight: { type: 'number', minimum: 0.3, multipleOf: 0.1 },
    size: { enum: [5, 10] },
    gift: { type: 'boolean' },
    rooms: { type: 'array', items: { enum: ['desk', 'wall'] } },
    words: { type: 'array', items: { type: 'string', title: 'Word' } },
    ring_at: { type: 'string', format: 'time' },
    mood: { type: 'string', minLength: 2, maxLength: 3 },
    due: { type: 'string', format: 'date' },
    call: { type: 'string', format: 'date-time' },
    parcel: { type: 'object', properties: { depth: { type: 'integer' } } },
  },
};

/** A page of the table, and the records that its form has sent. */
async function openForm(
  t: TestContext,
  kind: 'insert' | 'edit' | 'delete',
  { query = '', record = {} }: { readonly query?: string; readonly record?: object } = {},
) {
  const submit = { url: '/host', a: `orders.${kind}` };
  const site = await startSite(t, {
    ini: '[table.orders]\nschema = orders.json\n',
    files: { 'orders.json': JSON.stringify(table) },
    rules: [
      {
        path: '/orders',
        kind: `${kind}-record`,
        table: 'orders',
        engine: 'form',
        enginedata: { submit },
      },
    ],
  });
  const tab = await openTab(t);
  const { page } = tab;
  const sent: unknown[] = [];
  await page.route('**/host', async (route) => {
    const { a, v } = route.request().postDataJSON() as { a: string; v: object };
    if (a !== 'orders.read') sent.push(v);
    await route.fulfill({ json: { r: a, data: { id: '7', ...record } } });
  });
  assert.equal(await visitGeneric(tab, `${site.url}/orders?${query}`), 'rendered');
  return { page, sent };
}

suite('the values of a form', () => {
  test('from the address are converted by the schema, also if it allows several types', async (t) => {
    const query = 'dozens=10&weight=0.3&size=10&gift=true&rooms=wall&words=a&ring_at=14:30';
    const { page, sent } = await openForm(t, 'insert', { query });
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved. Thank you.').waitFor();
    assert.deepEqual(sent, [
      {
        dozens: 10,
        weight: 0.3,
        size: 10,
        gift: true,
        rooms: ['wall'],
        words: ['a'],
        ring_at: '14:30',
      },
    ]);
  });

  test('are refused if they are not a multiple, counted from 0', async (t) => {
    const { page, sent } = await openForm(t, 'insert', { query: 'dozens=6' });
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('alert').waitFor();
    await page.getByLabel('Dozens').fill('5');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved. Thank you.').waitFor();
    assert.deepEqual(sent, [{ dozens: 5, gift: false }]);
  });

  test('show a time with its offset, and keep the offset when the time changes', async (t) => {
    const record = { ring_at: '14:30:00+01:00' };
    const { page, sent } = await openForm(t, 'edit', { query: 'id=7', record });
    const time = page.getByLabel('Ring at');
    assert.match(await time.inputValue(), /^14:30(:00)?$/);
    await time.fill('15:45');
    await page.getByRole('button', { name: 'Save changes' }).click();
    await page.getByText('Your changes are saved.').waitFor();
    assert.deepEqual(sent, [{ id: '7', ring_at: '15:45:00+01:00' }]);
  });
});

suite('a form keeps', () => {
  const label = (emoji: number) => '\u{1f600}'.repeat(emoji);

  test('text that is too long, and counts it as the schema does', async (t) => {
    const { page, sent } = await openForm(t, 'insert');
    const mood = page.getByLabel('Mood');
    for (const [emoji, complaint] of [
      [1, 'At least 2 characters'],
      [4, 'At most 3 characters'],
    ] as const) {
      await mood.fill('');
      await mood.focus();
      await page.keyboard.insertText(label(emoji));
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByRole('alert').getByText(complaint).waitFor();
    }
    await mood.fill(label(3));
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved. Thank you.').waitFor();
    assert.deepEqual(sent, [{ gift: false, mood: label(3) }]);
  });

  test('a year with too many digits, and an incomplete number in a group', async (t) => {
    const { page, sent } = await openForm(t, 'insert');
    const wrong = page.locator('[aria-invalid]');
    await page.getByLabel('Due').fill('20266-01-01');
    await page.getByLabel('Call').fill('20266-01-01T10:00');
    await page.getByLabel('Depth').focus();
    await page.keyboard.type('1e');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('alert').waitFor();
    assert.equal(await wrong.count(), 3);
    await page.getByLabel('Due').fill('9999-12-31');
    await page.getByLabel('Call').fill('');
    await page.getByLabel('Depth').fill('');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved. Thank you.').waitFor();
    assert.deepEqual(sent, [{ gift: false, due: '9999-12-31' }]);
  });
});

test('a form without a title has its action as heading', async (t) => {
  for (const [kind, heading] of [
    ['insert', 'Save: Order'],
    ['edit', 'Save changes: Order'],
    ['delete', 'Delete: Order'],
  ] as const) {
    const { page } = await openForm(t, kind, { query: 'id=7' });
    assert.equal(await page.getByRole('heading', { level: 1 }).innerText(), heading);
  }
});
