import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { startSite, type Answer } from '../../../harness.ts';
import { transports } from '../../status/transports.ts';

const sale = { type: 'sale.completed', data: { id: 'S-1', total: 12.5, shop: 'harbour' } };
const url = 'https://shop.example/hooks';

/** The events of a list, each by its type and data. */
function told({ data }: Answer): unknown[] {
  return data.rows.map(({ type, data: said }: { type: string; data: object }) => [type, said]);
}

test('a source that fails is an event, once a minute for a rule', async (t) => {
  const rule = { path: '/far/*', kind: 'content.fetch' };
  const site = await startSite(t, {
    rules: [{ ...rule, enginedata: { source: 'http://127.0.0.1:1/*' } }],
  });
  const { rows } = (await site.call('svc1.userinterface.list', {})).data;
  for (const path of ['/far/a', '/far/b', '/far/c']) {
    assert.equal((await fetch(site.url + path)).status, 502);
  }
  for (;;) {
    const list = await site.call('svc1.event.list', { type: 'error.detected' });
    // A new minute may have started in between.
    if (list.data.rows.length === 0) continue;
    assert.ok(list.data.rows.length <= 2);
    const [{ data }] = list.data.rows;
    assert.deepEqual([data.code, data.id], ['bad_gateway', rows[0].id]);
    assert.ok(!JSON.stringify(data).includes('127.0.0.1'));
    return;
  }
});

test('a key of the scope verify reads events, and writes nothing', async (t) => {
  const site = await startSite(t);
  const keyOf = async (scope: string) => {
    const made = await site.call('svc1.key.insert', { name: scope, scopes: [scope] });
    return made.data.key as string;
  };
  const { id } = (await site.call('svc1.event.insert', sale)).data;
  for (const scope of ['verify', 'event'] as const) {
    const apikey = await keyOf(scope);
    for (const [name, v] of [
      ['svc1.event.read', { id }],
      ['svc1.event.list', {}],
      ['svc1.event.types', {}],
    ] as const) {
      assert.equal((await site.call(name, v, { apikey })).error, undefined, `${scope} ${name}`);
    }
    const inserted = await site.call('svc1.event.insert', sale, { apikey });
    assert.equal(inserted.error?.code, scope === 'verify' ? 'forbidden' : undefined);
    const hooks = await site.call('svc1.webhook.list', {}, { apikey });
    assert.equal(hooks.error?.code, 'forbidden');
  }
  const apikey = await keyOf('webhook');
  const { error } = await site.call('svc1.event.read', { id }, { apikey });
  assert.equal(error?.code, 'forbidden');
});

test('each key has vks of its own', async (t) => {
  const site = await startSite(t);
  const till = async (name: string) => {
    const { key } = (await site.call('svc1.key.insert', { name, scopes: ['event'] })).data;
    return (total: number) => {
      const v = { ...sale, data: { id: 'S-1', total } };
      return site.call('svc1.event.insert', v, { apikey: key, vk: 'sale-1' });
    };
  };
  const [one, two] = [await till('one'), await till('two')];
  const first = await one(1);
  const other = await two(2);
  assert.equal(other.error, undefined);
  assert.notEqual(other.data.id, first.data.id);
  assert.equal((await one(1)).data.id, first.data.id);
  assert.equal((await two(2)).data.id, other.data.id);
  assert.equal((await one(2)).error?.code, 'conflict');
});

for (const [transport, open] of Object.entries(transports)) {
  suite(`events over ${transport}`, () => {
    test('an event is durable once it is answered; the answer counts its hooks', async (t) => {
      const call = await open(await startSite(t));
      const insert = (v: object) => call('svc1.webhook.insert', { url, ...v });
      await insert({ event: ['sale.completed'] });
      await insert({
        event: ['sale.completed', 'stock.level_changed'],
        filter: { shop: 'harbour' },
      });
      await insert({ event: '*', filter: { shop: 'station' } });
      await insert({ event: '*', filter: { toString: null } });
      await insert({ event: ['email.requested'] });
      const { data } = await call('svc1.event.insert', sale);
      assert.equal(data.hooks, 2);
      assert.match(data.id, /^[0-9a-f]{8}-[0-9a-f]{4}-7/);
      const { rows } = (await call('svc1.event.list', { type: 'sale.completed' })).data;
      const [{ occurred_at: time, ...row }] = rows;
      assert.deepEqual(row, { id: data.id, seq: data.seq, ...sale, counter: null });
      assert.match(time, /Z$/);
    });

    test('a hook with tables gets changes of their records, and events about no table', async (t) => {
      const call = await open(await startSite(t));
      const types = ['record.changed', 'sale.completed'];
      const { data } = await call('svc1.webhook.insert', {
        ...{ url, event: types, table: ['product', 'stock', 'product'] },
      });
      assert.deepEqual([data.table, data.problems], [['product', 'stock'], []]);
      const hooksOf = async (type: string, fields: object) =>
        (await call('svc1.event.insert', { type, data: fields })).data.hooks;
      assert.equal(await hooksOf('record.changed', { table: 'stock', id: 'P-1' }), 1);
      assert.equal(await hooksOf('record.changed', { table: 'customer', id: 'C-1' }), 0);
      assert.equal(await hooksOf('sale.completed', { id: 'S-1' }), 1);
    });

    test('a repeat with a vk stores no second event; without a vk and time it does', async (t) => {
      const call = await open(await startSite(t));
      const first = await call('svc1.event.insert', sale, { vk: 'till-1' });
      const again = await call('svc1.event.insert', sale, { vk: 'till-1' });
      assert.deepEqual([again.data, again.replayed], [first.data, true]);
      const other = await call('svc1.event.insert', { ...sale, counter: '2' }, { vk: 'till-1' });
      assert.equal(other.error?.code, 'conflict');

      const [one, two] = [
        await call('svc1.event.insert', sale),
        await call('svc1.event.insert', sale),
      ];
      assert.deepEqual([two.data, two.replayed], [one.data, true]);
      const dated = { ...sale, occurred_at: '2026-11-21T12:00:00+01:00', counter: 'Harbour 7' };
      const once = await call('svc1.event.insert', dated);
      const twice = await call('svc1.event.insert', dated);
      assert.deepEqual([twice.data, twice.replayed], [once.data, true]);
      const [{ occurred_at: time, counter }] = (await call('svc1.event.list', { limit: 1 })).data
        .rows;
      assert.deepEqual([time, counter], ['2026-11-21T11:00:00.000Z', 'Harbour 7']);
    });

    test('the answer always has a vk, with which the request can be repeated', async (t) => {
      const call = await open(await startSite(t));
      for (const v of [sale, { ...sale, occurred_at: '2026-11-21T12:00:00Z' }]) {
        const { data, vk } = await call('svc1.event.insert', v);
        const again = await call('svc1.event.insert', v, { vk: vk ?? '' });
        assert.deepEqual([again.data, again.vk, again.replayed], [data, vk, true]);
      }
      const { id } = (await call('svc1.webhook.insert', { url, event: '*' })).data;
      const tested = await call('svc1.webhook.test', { id });
      const again = await call('svc1.webhook.test', { id }, { vk: tested.vk ?? '' });
      assert.deepEqual([again.data.id, again.replayed], [tested.data.id, true]);
    });

    test('an event is read by the id that its deliveries have', async (t) => {
      const call = await open(await startSite(t));
      const { id } = (await call('svc1.event.insert', sale)).data;
      const hook = await call('svc1.webhook.insert', { url, event: '*' });
      const { rows } = (await call('svc1.event.list', {})).data;
      const [changed, sold] = rows;
      assert.deepEqual([sold.id, changed.data.id], [id, hook.data.id]);
      for (const row of [sold, changed]) {
        assert.deepEqual((await call('svc1.event.read', { id: row.id })).data, row);
      }
      const far = changed.id.replace(/\d+$/, '999999');
      for (const none of ['', 'none', hook.data.id, far, `none-${changed.seq}`]) {
        const { error } = await call('svc1.event.read', { id: none });
        assert.deepEqual([error?.code, error?.field], ['not_found', 'id'], none);
      }
    });

    test('an invalid event is refused', async (t) => {
      const call = await open(await startSite(t));
      for (const [v, code, field] of [
        [{ type: 'Sale' }, 'invalid', 'type'],
        [{ type: 'webhook.test' }, 'invalid', 'type'],
        [{ ...sale, occurred_at: 'today' }, 'invalid', 'occurred_at'],
        [{ ...sale, data: [] }, 'invalid', 'data'],
        [{ ...sale, data: { text: 'x'.repeat(256 * 1024) } }, 'too_large', 'data'],
      ] as const) {
        const { error } = await call('svc1.event.insert', v);
        assert.deepEqual([error?.code, error?.field], [code, field]);
      }
    });

    test('a change of a record is an event without secrets', async (t) => {
      const call = await open(await startSite(t));
      const page = { path: '/a', kind: 'content', content: 'one' };
      const rule = (await call('svc1.userinterface.insert', page)).data;
      const edit = (await call('svc1.userinterface.edit', { id: rule.id, content: 'two' })).data;
      const hook = (await call('svc1.webhook.insert', { url, event: '*' })).data;
      const key = (await call('svc1.key.insert', { name: 'k', scopes: ['read'] })).data;
      const list = await call('svc1.event.list', { type: 'record.changed', limit: 4 });
      const changes = list.data.rows.map(({ data }: { data: object }) => data);
      const [keyed, hooked, edited, inserted] = changes;
      assert.deepEqual(
        [inserted.table, inserted.id, inserted.action, inserted.fields.toSorted()],
        ['userinterface', rule.id, 'insert', ['content', 'kind', 'origin', 'path']],
      );
      assert.deepEqual(
        [edited.table, edited.id, edited.action, edited.seq, edited.fields],
        ['userinterface', rule.id, 'edit', edit.seq, ['content']],
      );
      assert.deepEqual([hooked.table, hooked.id], ['webhook', hook.id]);
      assert.deepEqual([keyed.table, keyed.id], ['key', key.id]);
      assert.ok(!/whsec_|hash|"one"/.test(JSON.stringify(list)));
    });

    test('data that does not fit its type is delivered, and named', async (t) => {
      const call = await open(await startSite(t));
      const insert = async (type: string, data: object) =>
        (await call('svc1.event.insert', { type, data })).data.unknowns;
      assert.deepEqual(await insert('sale.completed', sale.data), []);
      const odd = { total: 'much', lines: [{ price: 1 }], colour: 'blue' };
      const named = ['id', 'lines.0.product', 'total'];
      assert.deepEqual((await insert('sale.completed', odd)).toSorted(), named);
      assert.deepEqual(await insert('ship.sunk', { id: 7 }), []);
      assert.deepEqual(told(await call('svc1.event.list', { limit: 2 })).at(1), [
        'sale.completed',
        odd,
      ]);
      const { rows } = (await call('svc1.event.types', {})).data;
      assert.ok(rows.some(({ type }: { type: string }) => type === 'stock.level_changed'));
    });

    test('events are listed a page at a time, and by type and counter', async (t) => {
      const call = await open(await startSite(t));
      for (const [n, counter] of ['1', '2', '1'].entries()) {
        await call('svc1.event.insert', { type: 'stock.level_changed', data: { n }, counter });
      }
      const of = (v: object) => call('svc1.event.list', v);
      const first = await of({ counter: '1', limit: 1 });
      assert.equal(told(first).length, 1);
      const second = await of({ counter: '1', limit: 1, before: first.data.next });
      assert.equal(told(second).length, 1);
      assert.notEqual(first.data.rows[0].id, second.data.rows[0].id);
      assert.deepEqual(told(await of({ type: 'sale.completed' })), []);
    });

    test('a repeated test gets the first answer, even after its hook was paused', async (t) => {
      const call = await open(await startSite(t));
      const { id } = (await call('svc1.webhook.insert', { url, event: ['sale.completed'] })).data;
      const first = await call('svc1.webhook.test', { id }, { vk: 'test' });
      await call('svc1.webhook.pause', { id });
      assert.equal((await call('svc1.webhook.test', { id })).error?.code, 'conflict');
      const again = await call('svc1.webhook.test', { id }, { vk: 'test' });
      assert.deepEqual([again.replayed, again.data], [true, first.data]);
    });

    test('a test is an event for one hook only', async (t) => {
      const call = await open(await startSite(t));
      const { id } = (await call('svc1.webhook.insert', { url, event: ['sale.completed'] })).data;
      await call('svc1.webhook.insert', { url, event: '*', name: 'all' });
      assert.equal((await call('svc1.webhook.test', { id })).data.hooks, 1);
      assert.equal((await call('svc1.webhook.test', { id: 'x' })).error?.code, 'not_found');
      const [[type, data]] = told(await call('svc1.event.list', { limit: 1 })) as [
        [string, Answer],
      ];
      assert.equal(type, 'webhook.test');
      assert.deepEqual(data, { hook: id, message: 'This is a test.' });
    });
  });
}
