import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { startSite, type Answer, type TestSite } from '../../../harness.ts';

async function send(site: TestSite, operation: string, form: string): Promise<Answer> {
  const reply = await fetch(`${site.url}/svc1/${operation}`, {
    method: 'POST',
    headers: { apikey: site.adminKey, 'content-type': 'application/x-www-form-urlencoded' },
    body: form,
  });
  return (await reply.json()) as Answer;
}

// CONTRACT §5: "POST bodies: … as JSON, or a form with `_v.` names."
suite('a form', () => {
  const fetched = '_v.path=/f/*&_v.kind=content.fetch&_v.enginedata.source=https://a.example/*';
  for (const [form, enginedata] of [
    ['&_v.enginedata.methods=GET&_v.enginedata.methods=POST', { methods: ['GET', 'POST'] }],
    ['&_v.enginedata.methods=GET', { methods: ['GET'] }],
    ['&_v.enginedata.cache_cookies=true', { cache_cookies: true }],
    [
      '&_v.enginedata.cache_cookies=false&_v.enginedata.retries=3',
      { cache_cookies: false, retries: 3 },
    ],
    [
      '&_v.enginedata.weights=1&_v.enginedata.headers.X-Number=5',
      { weights: [1], headers: { 'X-Number': '5' } },
    ],
  ] as const) {
    test(`has lists, numbers, true and false: ${form}`, async (t) => {
      const site = await startSite(t);
      const { data } = await send(site, 'userinterface/insert', fetched + form);
      assert.deepEqual(data.problems, []);
      assert.deepEqual(data.enginedata, { source: 'https://a.example/*', ...enginedata });
    });
  }

  test('of an edit, which names no kind, has them too', async (t) => {
    const site = await startSite(t);
    const crumb = { path: 'key', kind: 'resolve', enginedata: { target: '/a' } };
    const { id } = (await site.call('svc1.userinterface.insert', crumb)).data;
    const form = `_v.id=${id}&_v.enginedata.target=/b&_v.enginedata.forward_query=true`;
    const { data } = await send(site, 'userinterface/edit', form);
    assert.deepEqual(data.enginedata, { target: '/b', forward_query: true });
  });

  test('has the events of a webhook, one or more', async (t) => {
    const site = await startSite(t);
    for (const [form, event] of [
      ['_v.url=https://a.example/&_v.event=sale.completed', ['sale.completed']],
      [
        '_v.url=https://b.example/&_v.event=sale.completed&_v.event=stock.level_changed',
        ['sale.completed', 'stock.level_changed'],
      ],
    ] as const) {
      const { data } = await send(site, 'webhook/insert', form);
      assert.deepEqual(data.event, event);
    }
  });

  test('has the lists, numbers and objects of a row by the schema of its table', async (t) => {
    const site = await startSite(t);
    const whole = { type: 'integer' };
    const properties = {
      tags: { type: 'array', items: { type: 'string' } },
      sizes: { type: 'array', items: whole },
      place: { type: 'object', properties: { x: whole, open: { type: 'boolean' } } },
      note: { type: ['string', 'null'] },
      either: { type: ['string', 'array'], items: whole },
    };
    const schema = { type: 'object', properties };
    await site.call('svc1.table.insert', { name: 't', schema });
    for (const [form, row] of [
      ['_v.tags=a', { tags: ['a'] }],
      ['_v.tags=a&_v.tags=5', { tags: ['a', '5'] }],
      ['_v.sizes=1', { sizes: [1] }],
      ['_v.sizes=1&_v.sizes=9007199254740991', { sizes: [1, 9007199254740991] }],
      ['_v.place.x=5&_v.place.open=on', { place: { x: 5, open: true } }],
      ['_v.either=7', { either: '7' }],
    ] as const) {
      const { data } = await send(site, 'record/insert', `_v.table=t&${form}`);
      assert.deepEqual(data.problems, [], form);
      const { id: _id, seq: _seq, problems: _problems, ...fields } = data;
      for (const [name, value] of Object.entries(row)) assert.deepEqual(fields[name], value, form);
    }
  });

  test('that inserts has no empty fields, and so is the same write as JSON without them', async (t) => {
    const site = await startSite(t);
    const form = '_v.path=/d&_v.content=1&_v.lang=&_v.rve=';
    const { data } = await send(site, 'userinterface/insert', form);
    assert.deepEqual([data.lang, data.problems], [undefined, []]);
    const same = await site.call('svc1.userinterface.insert', { path: '/d', content: '1' });
    assert.deepEqual([same.replayed, same.data.id], [true, data.id]);
  });

  test('that is multipart is refused by an error with the types that are taken', async (t) => {
    const site = await startSite(t);
    const body = new FormData();
    body.set('_v.path', '/x');
    const url = `${site.url}/svc1/userinterface/insert`;
    const reply = await fetch(url, { method: 'POST', headers: { apikey: site.adminKey }, body });
    const { error } = (await reply.json()) as Answer;
    const message = error?.message ?? '';
    assert.deepEqual([reply.status, error?.code], [400, 'invalid']);
    for (const type of ['application/json', 'application/x-www-form-urlencoded']) {
      assert.ok(message.includes(type), message);
    }
  });

  test('with a value that is also an object is refused', async (t) => {
    const site = await startSite(t);
    const form = `${fetched}&_v.enginedata.source.x=1`;
    const { error } = await send(site, 'userinterface/insert', form);
    assert.match(error?.message ?? '', /both as a value and as an object/);
  });
});
