import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Problem } from '../../../src/core/values/failure.ts';
import { startSite, type Answer } from '../../harness.ts';
import { transports } from '../../modules/status/transports.ts';

const products = {
  name: 'products',
  schema: { type: 'object', properties: { sku: { type: 'string' }, shop: { type: 'string' } } },
  key: 'sku',
  index: ['shop'],
};

/** Inputs with a field that the operation would ignore, and the name that it suggests. */
const ignored = [
  ['record.list', { table: 'products', filter: { shop: 'x' } }, 'filter', undefined],
  ['record.list', { table: 'products', sort_by: 'shop' }, 'sort_by', undefined],
  ['record.list', { tabel: 'products' }, 'tabel', 'table'],
  ['record.read', { table: 'products', sku: 'A', asof: '1' }, 'asof', 'as_of'],
  ['record.read', { table: 'products', shop: 'x' }, 'shop', undefined],
  ['record.get', { table: 'products', sort: 'shop', limits: 3 }, 'limits', 'limit'],
  ['record.invalidate', { table: 'products', sku: 'A', form: '1' }, 'form', 'from'],
  ['userinterface.list', { paht: '/' }, 'paht', 'path'],
  ['userinterface.invalidate', { by: 'x', untill: '3' }, 'untill', 'until'],
  ['event.insert', { type: 'order.placed', date: {} }, 'date', 'data'],
  ['key.insert', { name: 'till', scopes: ['read'], rates: 1 }, 'rates', 'rate'],
  ['key.list', { limit: 3 }, 'limit', undefined],
] as const;

for (const [transport, open] of Object.entries(transports)) {
  test(`a field that an operation does not know is refused, over ${transport}`, async (t) => {
    const site = await startSite(t);
    const call = await open(site);
    await call('svc1.table.insert', products);
    for (const [name, v, field, suggestion] of ignored) {
      const { error } = await call(`svc1.${name}`, v);
      assert.deepEqual([error?.code, error?.field], ['invalid', field], name);
      assert.ok(error !== undefined, name);
      const [problem] = (error.problems ?? []) as readonly Problem[];
      assert.deepEqual([problem?.reason, problem?.suggestion], ['unknown_field', suggestion], name);
      const hint = suggestion === undefined ? 'It takes' : `Did you mean ${suggestion}?`;
      assert.ok(error.message.includes(hint), error.message);
    }
    // null stands for an absent field.
    const list = await call('svc1.record.list', { table: 'products', filter: null });
    assert.deepEqual(list.data, { rows: [], next: null });
    // A write of a record stores it.
    const row = await call('svc1.record.insert', { table: 'products', sku: 'B', colour: 'red' });
    assert.deepEqual(row.data.unknowns, ['colour']);
    const { error } = await call('svc1.record.list', { table: 'products' }, { qk: 'history' });
    assert.deepEqual([error?.code, error?.field], ['invalid', 'qk']);
  });
}

test('a parameter or a member outside of v that would be ignored is refused', async (t) => {
  const { url, adminKey } = await startSite(t);
  const answer = async (path: string, body?: object | URLSearchParams) => {
    const isForm = body instanceof URLSearchParams;
    const reply = await fetch(`${url}/svc1/${path}`, {
      headers: { apikey: adminKey },
      ...(body && { method: 'POST', body: isForm ? body : JSON.stringify(body) }),
    });
    return ((await reply.json()) as Answer).error;
  };
  const refused = async (path: string, hint: string, body?: object | URLSearchParams) => {
    const error = await answer(path, body);
    assert.equal(error?.code, 'invalid', path);
    assert.ok(error.message.includes(hint), error.message);
  };
  await refused('userinterface/list?path=/x', 'Did you mean _v.path?');
  await refused('userinterface/list?v.path=/x', 'Did you mean _v.path?');
  await refused('userinterface/list?_v.kindd=content', 'Did you mean kind?');
  await refused('userinterface/list?_=1', 'has no parameter "_"');
  await refused('userinterface/list?_v.path=/x', 'Send it in the body', { v: {} });
  await refused('userinterface/list', '"limit" is outside v', { v: { path: '/' }, limit: 3 });
  const form = new URLSearchParams({ '_v.path': '/x', content: 'x' });
  await refused('userinterface/insert', 'Did you mean _v.content?', form);
  assert.equal(await answer('userinterface/list?_v.path=/x&path='), undefined);
});
