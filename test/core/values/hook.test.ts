import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { WaymarkEvent } from '../../../src/core/log/events/event.ts';
import { isDeliveredOn, type Hook, type Node } from '../../../src/modules/webhooks/hook.ts';
import type { JsonObject } from '../../../src/core/values/json/json.ts';

const hook: Hook = {
  id: 'h-1',
  event: ['sale.completed'],
  url: 'https://shop.example/hook',
  method: 'POST',
  headers: {},
  frequency: { mode: 'each' },
  filter: {},
  order: false,
  retry_limit: 10,
  active: true,
};

const sale: WaymarkEvent = {
  id: 'e-1',
  logSeq: 1,
  type: 'sale.completed',
  occurred_at: '2026-11-21T12:00:00.000Z',
  stored_at: '2026-11-21T12:00:00.000Z',
  counter: null,
  table: undefined,
  hook: undefined,
  about: undefined,
  data: { table: 'product', total: 12.5, lines: [{ sku: 'a' }] },
};

const all: Node = { role: 'all', name: 'shop' };

suite('a hook gets an event', () => {
  const cases: readonly (readonly [string, Partial<Hook>, Partial<WaymarkEvent>, boolean])[] = [
    ['of its type', {}, {}, true],
    ['of another type', {}, { type: 'email.requested' }, false],
    ['of one of its types', { event: ['a.b', 'sale.completed'] }, {}, true],
    ['of any type', { event: ['*'] }, { type: 'what.ever' }, true],
    ['that is a test of it', { event: ['a.b'] }, { type: 'webhook.test', hook: 'h-1' }, true],
    ['that is a test of another', { event: ['*'] }, { type: 'webhook.test', hook: 'h-2' }, false],
    ['about itself', { event: ['*'] }, { type: 'error.detected', about: 'h-1' }, false],
    ['about another', { event: ['*'] }, { type: 'error.detected', about: 'h-2' }, true],
    ['of its table', { table: ['products', 'stock'] }, { table: 'stock' }, true],
    ['of another table', { table: ['products'] }, { table: 'stock' }, false],
    ['about no table', { table: ['products'] }, {}, true],
    ['while its tables are invalid', { _unknowns_: { table: 7 } }, {}, false],
  ];
  for (const [what, fields, event, expected] of cases) {
    test(`${what}: ${expected ? 'yes' : 'no'}`, () => {
      assert.equal(isDeliveredOn({ ...hook, ...fields }, { ...sale, ...event }, all), expected);
    });
  }

  const filters: readonly (readonly [JsonObject, boolean])[] = [
    [{ table: 'product' }, true],
    [{ table: 'customer' }, false],
    [{ table: 'product', total: 12.5 }, true],
    [{ table: 'product', total: '12.5' }, false],
    [{ lines: [{ sku: 'a' }] }, true],
    [{ lines: [{ sku: 'b' }] }, false],
    [{ missing: 'x' }, false],
    [{ constructor: 'x' }, false],
  ];
  for (const [filter, expected] of filters) {
    test(`by the filter ${JSON.stringify(filter)}: ${expected ? 'yes' : 'no'}`, () => {
      assert.equal(isDeliveredOn({ ...hook, filter }, sale, all), expected);
    });
  }
});

suite('a hook is executed', () => {
  const central: Node = { role: 'central', name: 'head-office' };
  const counter: Node = { role: 'counter', name: 'till-3' };
  const replica: Node = { role: 'replica', name: 'copy-1' };
  const cases: readonly (readonly [string | undefined, string | undefined, string])[] = [
    // where, the event's counter, and the nodes that execute it: all, central, till-3
    [undefined, undefined, 'all central'],
    [undefined, 'till-3', 'all till-3'],
    [undefined, 'till-4', 'all'],
    ['central', 'till-3', 'all central'],
    ['till-3', undefined, 'all till-3'],
    ['till-4', 'till-3', 'all'],
    ['counters', 'till-3', 'all till-3'],
    ['counters', 'till-4', 'all'],
    ['counters', undefined, 'all till-3'],
    ['head-office', undefined, 'all central'],
    ['head-office', 'till-3', 'all central'],
    [undefined, 'head-office', 'all'],
    ['copy-1', undefined, 'all copy-1'],
    [undefined, 'copy-1', 'all'],
  ];
  for (const [where, of, expected] of cases) {
    test(`where ${where ?? 'its event says'}, for ${of ?? 'no counter'}: ${expected}`, () => {
      const placed = where === undefined ? hook : { ...hook, where };
      const event = of === undefined ? sale : { ...sale, counter: of };
      const nodes = { all, central, 'till-3': counter, 'copy-1': replica };
      const takersOf = (taken: WaymarkEvent): string =>
        Object.entries(nodes)
          .flatMap(([name, node]) => (isDeliveredOn(placed, taken, node) ? name : []))
          .join(' ');
      assert.equal(takersOf(event), expected);
      // A test of the hook goes where its events go.
      assert.equal(takersOf({ ...event, type: 'webhook.test', hook: placed.id }), expected);
    });
  }
});
