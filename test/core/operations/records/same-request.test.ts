import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseJson } from '../../../../src/core/values/json/parse.ts';
import { postOperation, startSite, type Answer, type TestSite } from '../../../harness.ts';

/** The id of an answer, and whether it was given before. */
type Written = readonly [id: unknown, replayed: unknown];

function written({ data, replayed, error }: Answer): Written {
  assert.equal(error, undefined, JSON.stringify(error));
  return [data.id, replayed];
}

async function sendForm({ url, adminKey }: TestSite, name: string, form: object): Promise<Written> {
  const reply = await fetch(`${url}/svc1/${name}`, {
    method: 'POST',
    headers: { apikey: adminKey },
    body: new URLSearchParams({ ...form }),
  });
  return written(parseJson(await reply.text()) as Answer);
}

test('two events whose numbers differ beyond 2⁵³ are two', async (t) => {
  const site = await startSite(t);
  const send = async (number: string, occurredAt: string): Promise<Written> => {
    const data = parseJson(`{"n":${number}}`);
    return written(
      await site.call('event.insert', { type: 'sale.made', data, occurred_at: occurredAt }),
    );
  };
  const at = '2026-11-29T10:00:00Z';
  const [even] = await send('9007199254740992', at);
  const [odd, replayed] = await send('9007199254740993', at);
  assert.notEqual(odd, even);
  assert.equal(replayed, undefined);
  // Other forms of the same values.
  assert.deepEqual(await send('9007199254740993.0', at), [odd, true]);
  assert.deepEqual(await send('9007199254740993', '2026-11-29T11:00:00.000+01:00'), [odd, true]);
  const [later] = await send('9007199254740993', '2026-11-29T10:00:00.0001Z');
  assert.notEqual(later, odd);
  const { data } = await site.call('event.read', { id: later });
  assert.equal(data.occurred_at, '2026-11-29T10:00:00.0001Z');
  assert.equal(JSON.stringify(data.data), '{"n":9007199254740993}');
});

test('an event without a time is stored once within a minute, for each key', async (t) => {
  const startMs = Date.now();
  t.mock.timers.enable({ apis: ['Date'], now: startMs });
  const site = await startSite(t);
  const { data: other } = await site.call('key.insert', { name: 'till', scopes: ['event'] });
  const send = async (ms: number, apikey = site.adminKey): Promise<Written> => {
    t.mock.timers.setTime(startMs + ms);
    const v = { type: 'stock.counted', data: { left: 4 } };
    return written(await postOperation(site.url, 'svc1.event.insert', v, { apikey }));
  };
  const [first, replayed] = await send(0);
  assert.equal(replayed, undefined);
  assert.deepEqual(await send(60_000), [first, true]);
  const [ofOther] = await send(60_000, other.key as string);
  assert.notEqual(ofOther, first);
  const [second, again] = await send(60_001);
  assert.notEqual(second, first);
  assert.equal(again, undefined);
  assert.deepEqual(await send(60_002), [second, true]);
});

test('the same insert as JSON and as a form is one, with a vk and without', async (t) => {
  const site = await startSite(t);
  const schema = {
    properties: { n: { type: 'number' }, on: { type: 'boolean' }, t: { type: 'integer' } },
  };
  await site.call('table.insert', { name: 'things', schema });
  const fields = '"table":"things","n":9007199254740993,"on":true';
  const row = parseJson(`{${fields}}`) as object;
  const rowForm = { '_v.table': 'things', '_v.n': '9007199254740993', '_v.on': 'true', '_v.t': '' };
  const rule = { path: '/x', kind: 'resolve', enginedata: { target: '/y' }, httpresponse: 301 };
  const ruleForm = { '_v.path': '/x', '_v.kind': 'resolve', '_v.enginedata.target': '/y' };
  const hook = { event: ['sale.made'], url: 'https://example.com/', active: false, retry_limit: 3 };
  const hookForm = { '_v.event': 'sale.made', '_v.url': 'https://example.com/' };
  const cases: readonly (readonly [string, object, object])[] = [
    ['record', row, rowForm],
    ['userinterface', rule, { ...ruleForm, '_v.httpresponse': '301' }],
    ['webhook', hook, { ...hookForm, '_v.active': 'false', '_v.retry_limit': '3' }],
  ];
  for (const [family, v, form] of cases) {
    for (const vk of [undefined, `one ${family}`]) {
      const more = vk === undefined ? {} : { vk };
      const [id, replayed] = written(await site.call(`${family}.insert`, v, more));
      assert.equal(replayed, undefined, family);
      const sent = { ...form, ...(vk !== undefined && { _vk: vk }) };
      assert.deepEqual(await sendForm(site, `${family}/insert`, sent), [id, true], family);
    }
  }
});

test('texts in other Unicode normal forms are other texts', async (t) => {
  const site = await startSite(t);
  await site.call('table.insert', { name: 'things', schema: { properties: { t: {} } } });
  const [one, other] = await Promise.all(
    ['\u00e9', 'e\u0301'].map(async (text) =>
      written(await site.call('record.insert', { table: 'things', t: text })),
    ),
  );
  assert.notEqual(one?.[0], other?.[0]);
});
