import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { parseJson } from '../../../src/core/values/json/parse.ts';
import type { JsonObject } from '../../../src/core/values/json/json.ts';
import { matchesFilter } from '../../../src/modules/webhooks/filter.ts';
import { transports } from '../status/transports.ts';
import { startReceiver } from './receiver.ts';
import { startRig } from './rig.ts';

suite('a filter', () => {
  const cases: readonly (readonly [filter: string, data: string, holds: boolean])[] = [
    ['{}', '{}', true],
    ['{"a":{"gt":5}}', '{"a":5.1}', true],
    ['{"a":{"gt":5}}', '{"a":5}', false],
    ['{"a":{"gte":5}}', '{"a":5}', true],
    ['{"a":{"lt":5}}', '{"a":5}', false],
    ['{"a":{"lt":5}}', '{"a":-7}', true],
    ['{"a":{"lte":5}}', '{"a":5}', true],
    ['{"a":{"gte":5,"lt":9}}', '{"a":8}', true],
    ['{"a":{"gte":5,"lt":9}}', '{"a":9}', false],
    ['{"a":{"gt":5}}', '{}', false],
    ['{"a":{"lt":5}}', '{"a":null}', false],
    ['{"a":{"gt":5}}', '{"a":"6"}', false],
    ['{"a":{"lt":true}}', '{"a":false}', false],
    ['{"a":{"gt":9007199254740992}}', '{"a":9007199254740993}', true],
    ['{"a":{"gte":9007199254740993}}', '{"a":9007199254740992}', false],
    ['{"a":{"in":[9007199254740993]}}', '{"a":9007199254740992}', false],
    ['{"a":{"gt":"2026-12-01T08:00:00+01:00"}}', '{"a":"2026-12-01T07:00:00Z"}', false],
    ['{"a":{"gte":"2026-12-01T08:00:00+01:00"}}', '{"a":"2026-12-01T07:00:00.000Z"}', true],
    ['{"a":{"lt":"2026-12-01T07:00:00.0000002Z"}}', '{"a":"2026-12-01T07:00:00.0000001Z"}', true],
    ['{"a":{"lt":"2026-12-01T07:00:00Z"}}', '{"a":"2026"}', false],
    ['{"a":{"gte":"2026-11-29"}}', '{"a":"2026-12-01"}', true],
    ['{"a":{"lt":"b"}}', '{"a":"abc"}', true],
    ['{"a":{"gt":"b"}}', '{"a":"ba"}', true],
    ['{"a":{"gt":"\uffff"}}', '{"a":"\ud83d\ude00"}', true],
    ['{"a":{"in":["x",7,{"b":1}]}}', '{"a":7}', true],
    ['{"a":{"in":["x",7,{"b":1}]}}', '{"a":{"b":1}}', true],
    ['{"a":{"in":["x",7]}}', '{"a":"7"}', false],
    ['{"a":{"in":["x"]}}', '{}', false],
    ['{"a":{"contains":"ell"}}', '{"a":"hello"}', true],
    ['{"a":{"contains":"ELL"}}', '{"a":"hello"}', false],
    ['{"a":{"contains":"x"}}', '{"a":["w","x"]}', true],
    ['{"a":{"contains":"x"}}', '{"a":["xx"]}', false],
    ['{"a":{"contains":7}}', '{"a":[7]}', true],
    ['{"a":{"contains":7}}', '{"a":"7"}', false],
    ['{"a":{"contains":"x"}}', '{"a":{"x":1}}', false],
    ['{"a":{"not":"x"}}', '{"a":"y"}', true],
    ['{"a":{"not":"x"}}', '{"a":"x"}', false],
    ['{"a":{"not":"x"}}', '{}', true],
    ['{"a":{"not":null}}', '{"a":null}', false],
    ['{"a":{"not":{"in":["x","y"]}}}', '{"a":"y"}', false],
    ['{"a":{"not":{"gt":5}}}', '{"a":"text"}', true],
    ['{"a":{"not":{"b":1}}}', '{"a":{"b":1}}', false],
    // Any other object is compared as a whole.
    ['{"a":{}}', '{"a":{}}', true],
    ['{"a":{"gt":5,"unit":"kg"}}', '{"a":{"unit":"kg","gt":5}}', true],
    ['{"a":{"gt":5,"unit":"kg"}}', '{"a":6}', false],
    ['{"a":{"in":"x"}}', '{"a":{"in":"x"}}', true],
    ['{"a":{"in":[{"gt":5}]}}', '{"a":{"gt":5}}', true],
    ['{"constructor":{"not":1}}', '{}', true],
    ['{"a":{"constructor":1}}', '{"a":1}', false],
  ];
  for (const [filter, data, holds] of cases) {
    test(`${filter} selects ${data}: ${holds ? 'yes' : 'no'}`, () => {
      const [expected, event] = [filter, data].map((text) => parseJson(text) as JsonObject);
      assert.ok(expected !== undefined && event !== undefined);
      assert.equal(matchesFilter(event, expected), holds);
    });
  }
});

for (const [transport, open] of Object.entries(transports)) {
  test(`a hook gets the events that its conditions select, set over ${transport}`, async (t) => {
    const { site, receiver, id } = await startRig(t);
    const call = await open(site);
    const filter = { total: { gte: 100, lt: 1_000 }, shop: { in: ['Bern', 'Basel'] } };
    const edited = await call('svc1.webhook.edit', { id, filter });
    assert.deepEqual([edited.data.filter, edited.data.problems], [filter, []]);
    const sent: readonly (readonly [object, number])[] = [
      [{ total: 99, shop: 'Bern' }, 0],
      [{ total: 100, shop: 'Bern' }, 1],
      [{ total: 500, shop: 'Thun' }, 0],
      [{ total: 1_000, shop: 'Basel' }, 0],
      [{ total: 999, shop: 'Basel' }, 1],
    ];
    for (const [data, hooks] of sent) {
      const event = await call('svc1.event.insert', { type: 'sale.completed', data });
      assert.equal(event.data.hooks, hooks, JSON.stringify(data));
    }
    const got = await receiver.until(2);
    const totals = got.map(({ body }) => body.data.total as number);
    assert.deepEqual(
      totals.toSorted((one, other) => one - other),
      [100, 999],
    );

    const waiting = await call('svc1.webhook.edit', { id, filter: { total: { in: 7 } } });
    assert.deepEqual([waiting.data.active, waiting.data.waits], [false, ['filter']]);
  });
}

test('conditions of a form compare numbers, as those of JSON do', async (t) => {
  const { site } = await startRig(t);
  const other = await startReceiver(t);
  const reply = await fetch(`${site.url}/svc1/webhook/insert`, {
    method: 'POST',
    headers: { apikey: site.adminKey },
    body: new URLSearchParams({
      ...{ '_v.url': other.url, '_v.event': 'sale.completed' },
      ...{ '_v.filter.total.gte': '12.5', '_v.filter.no.gt': '9007199254740992' },
      ...{ '_v.filter.shop': '7', '_v.filter.at.lt': '2026-12-01T07:00:00Z' },
    }),
  });
  const stored = JSON.stringify(
    (parseJson(await reply.text()) as { data: JsonObject }).data.filter,
  );
  assert.equal(
    stored,
    '{"total":{"gte":12.5},"no":{"gt":9007199254740992},"shop":"7",' +
      '"at":{"lt":"2026-12-01T07:00:00Z"}}',
  );
});
