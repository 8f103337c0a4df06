import { randomUUID } from 'node:crypto';
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { Problem } from '../../../../src/core/values/failure.ts';
import { startSite, type Answer } from '../../../harness.ts';
import { nodeKey } from '../../nodes/rig.ts';
import { transports } from '../../status/transports.ts';

const hook = 'svc1.webhook';
const shop = { event: ['sale.completed'], url: 'https://shop.example/hooks' };

/** The defaults of a hook. */
const standard = {
  method: 'POST',
  headers: {},
  frequency: { mode: 'each' },
  filter: {},
  order: false,
  retry_limit: 10,
  active: true,
};

test('texts become numbers and switches in a form, but not in JSON', async (t) => {
  const site = await startSite(t);
  const form = {
    ...{ '_v.url': shop.url, '_v.event': 'sale.completed', '_v.order': 'true', '_v.name': '7' },
    ...{ '_v.retry_limit': '3', '_v.frequency.mode': 'batch', '_v.frequency.max_events': '7' },
  };
  const reply = await fetch(`${site.url}/svc1/webhook/insert`, {
    method: 'POST',
    headers: { apikey: site.adminKey },
    body: new URLSearchParams(form),
  });
  const { data } = (await reply.json()) as Answer;
  assert.deepEqual(data.problems, []);
  assert.deepEqual([data.order, data.retry_limit, data.name], [true, 3, '7']);
  assert.equal(data.frequency.max_events, 7);
});

test('a URL with an address that deliveries may not reach is a problem at once', async (t) => {
  const site = await startSite(t, { ini: '[webhook]\nallow_private = 10.1.0.0/16\n' });
  for (const [url, isRefused] of [
    ['http://localhost:9/', true],
    ['http://[::1]:9/', true],
    ['http://10.2.0.1/hooks', true],
    ['http://169.254.169.254/', true],
    ['http://10.1.0.1/hooks', false],
    ['http://tills.internal/', false],
  ] as const) {
    const { data } = await site.call(`${hook}.insert`, { ...shop, url });
    const told = data.problems.map(({ field, reason }: Problem) => [field, reason]);
    assert.deepEqual(told, isRefused ? [['url', 'unreachable_private']] : [], url);
    const edit = (v: object) => site.call(`${hook}.edit`, { id: data.id, ...v });
    assert.deepEqual((await edit({ url })).data.problems, data.problems, url);
    assert.deepEqual((await edit({ name: 'tills' })).data.problems, [], url);
  }
  const { data } = await site.call(`${hook}.insert`, { ...shop, url: 'http://10.2.0.1/' });
  assert.equal(
    data.problems[0].message,
    'Deliveries to this URL are refused: 10.2.0.1 (private) is not in allow_private of [webhook] ' +
      'in the ini file.',
  );
});

test('a hook at another place is not compared with the networks of this server', async (t) => {
  const site = await startSite(t, { ini: '[node]\nrole = central\nname = centre\n' });
  const sent = { ...shop, url: 'http://10.2.0.1/', where: 'counter-7' };
  const { data } = await site.call(`${hook}.insert`, sent);
  assert.deepEqual(
    data.problems.map(({ field }: Problem) => field),
    ['where'],
  );
});

test('a hook or an event for a place without a node is a problem, and is logged', async (t) => {
  const site = await startSite(t, { ini: '[node]\nrole = central\nname = centre\n' });
  const insert = (v: object) => site.call(`${hook}.insert`, { ...shop, ...v });
  for (const [where, isKnown] of [
    ['central', true],
    ['centre', true],
    ['counters', false],
    ['counter-7', false],
  ] as const) {
    const { problems } = (await insert({ where })).data;
    const told = problems.map(({ field, reason }: Answer & Problem) => [field, reason]);
    assert.deepEqual(told, isKnown ? [] : [['where', 'no_effect']], where);
  }
  assert.match(site.logged(), /No node is known that executes hooks at .{0,2}counter-7/);
  const status = (await site.call('svc1.server.status', {})).data;
  assert.deepEqual(status.webhooks, {
    ...{ paused: 0, waiting: 0, without_node: 2, local_address: null },
  });

  const { id } = (await insert({ event: ['stock.counted'] })).data;
  const event = { type: 'stock.counted', counter: 'counter-7' };
  const { problems, hooks } = (await site.call('svc1.event.insert', event, { vk: randomUUID() }))
    .data;
  assert.equal(hooks, 0);
  assert.deepEqual([problems[0].field, problems[0].reason], ['counter', 'no_effect']);
  assert.match(problems[0].message, new RegExp(`${id} .*counter-7`));
  await site.call('svc1.event.insert', event, { vk: randomUUID() });
  assert.equal(site.logged().split('does not get the event').length, 2, 'one line a minute');
  const here = (await site.call('svc1.event.insert', { type: 'stock.counted' })).data;
  assert.deepEqual([here.hooks, here.problems], [1, []]);
});

test('a hook or an event for a place whose node has reported is no problem', async (t) => {
  const site = await startSite(t, { ini: '[node]\nrole = central\nname = centre\n' });
  const counter = { ...shop, where: 'counters', event: ['stock.counted'] };
  const { id } = (await site.call(`${hook}.insert`, counter)).data;
  const withoutNode = async (): Promise<number> =>
    (await site.call('svc1.server.status', {})).data.webhooks.without_node;
  assert.equal(await withoutNode(), 1);
  const apikey = await nodeKey(site, 'counter-7');
  const report = {
    ...{ node: 'counter-7', role: 'counter', version: '1', seq: 0, now: Date.now() },
    ...{ waiting: 0, refused: 0 },
  };
  assert.equal((await site.call('svc1.node.report', report, { apikey })).error, undefined);
  assert.equal(await withoutNode(), 0);
  for (const where of ['counters', 'counter-7']) {
    assert.deepEqual((await site.call(`${hook}.edit`, { id, where })).data.problems, []);
    const event = { type: 'stock.counted', counter: 'counter-7' };
    const { problems, hooks } = (await site.call('svc1.event.insert', event, { vk: randomUUID() }))
      .data;
    assert.deepEqual([problems, hooks], [[], 1]);
    const tested = (await site.call('svc1.webhook.test', { id })).data;
    assert.deepEqual([tested.problems, tested.hooks], [[], 1]);
  }
});

for (const [transport, open] of Object.entries(transports)) {
  suite(`hooks over ${transport}`, () => {
    test('a hook is registered, read, edited, and has a history; its secret is shown once', async (t) => {
      const site = await startSite(t);
      const call = await open(site);
      const inserted = await call(`${hook}.insert`, { ...shop, name: 'till' });
      const { id, seq, secret, unknowns, problems, ...fields } = inserted.data;
      assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/);
      assert.deepEqual(fields, { ...standard, ...shop, name: 'till' });
      assert.deepEqual([unknowns, problems], [[], []]);

      const edited = await call(`${hook}.edit`, { id, method: 'put', name: null, order: true });
      assert.equal(edited.data.method, 'PUT');
      assert.equal(edited.data.name, undefined);
      assert.ok(edited.data.seq > seq);

      const read = await call(`${hook}.read`, { id });
      const { seq: newest } = edited.data;
      assert.deepEqual(read.data, {
        ...standard,
        ...shop,
        method: 'PUT',
        order: true,
        id,
        seq: newest,
      });
      const then = await call(`${hook}.read`, { id, as_of: String(seq) });
      assert.deepEqual(then.data, { ...fields, id, seq });

      const history = await call(`${hook}.read`, { id }, { qk: 'history' });
      assert.deepEqual(
        history.data.rows.map(({ action, data }: Answer & { action: string }) => [action, data]),
        [
          ['edit', { id, method: 'PUT', order: true, name: null }],
          ['insert', { id, ...fields }],
        ],
      );
      const list = await call(`${hook}.list`, {});
      assert.deepEqual(list.data, { rows: [read.data], next: null });
      for (const answer of [edited, read, history, list]) {
        assert.ok(!JSON.stringify(answer).includes('whsec_'));
      }
      assert.ok(!site.logged().includes('whsec_'));
    });

    test('a list of hooks takes an as_of of null, and refuses any other', async (t) => {
      const call = await open(await startSite(t));
      assert.deepEqual((await call(`${hook}.list`, { as_of: null })).data, {
        rows: [],
        next: null,
      });
      const refused = await call(`${hook}.list`, { as_of: '1' });
      assert.deepEqual([refused.error?.code, refused.error?.field], ['invalid', 'as_of']);
    });

    test('the same request is one hook, and the answer to a repeat has no secret', async (t) => {
      const call = await open(await startSite(t));
      const first = await call(`${hook}.insert`, shop);
      const { secret, ...rest } = first.data;
      assert.ok(secret);
      const again = await call(`${hook}.insert`, shop);
      assert.equal(again.replayed, true);
      assert.deepEqual(again.data, rest);
      const other = await call(`${hook}.insert`, { ...shop, order: true }, { vk: first.vk ?? '' });
      assert.equal(other.error?.code, 'conflict');
    });

    test('the answer to an insert, sent back, makes another hook that does not show the secret', async (t) => {
      const call = await open(await startSite(t));
      const first = await call(`${hook}.insert`, { ...shop, name: 'one' });
      const { secret } = first.data;
      const second = await call(`${hook}.insert`, { ...first.data, name: 'two' });
      const { id } = second.data;
      assert.notEqual(second.data.secret, secret);
      const _unknowns_ = { secret };
      const edited = await call(`${hook}.edit`, { id, ...{ name: 'three', _unknowns_ } });
      const history = await call(`${hook}.read`, { id }, { qk: 'history' });
      for (const answer of [second, edited, history, await call(`${hook}.list`, {})]) {
        assert.ok(!JSON.stringify(answer).includes(secret));
      }
    });

    test('a hook needs a usable url and event; other fields wait until they are valid', async (t) => {
      const call = await open(await startSite(t));
      for (const [field, value] of [
        ['url', 'ftp://shop.example/'],
        ['url', 'https://user:word@shop.example/'],
        ['url', '/hooks'],
        ['event', []],
        ['event', ['Sale']],
        ['event', 'sale'],
      ] as const) {
        const { error } = await call(`${hook}.insert`, { ...shop, [field]: value });
        assert.equal(error?.code, 'invalid', `${field} ${JSON.stringify(value)}`);
        assert.equal(error.field, field);
      }
      for (const field of ['url', 'event'] as const) {
        const { error } = await call(`${hook}.insert`, { ...shop, [field]: null });
        assert.match(error?.message ?? '', new RegExp(`^${field} is missing`));
      }
      const waiting = {
        method: 'FETCH',
        headers: { 'X-Service-HMAC': 'mine' },
        frequency: { mode: 'batch', every: 'now' },
        retry_limit: 0,
        order: 'perhaps',
        colour: 'blue',
      };
      const { data } = await call(`${hook}.insert`, { ...shop, ...waiting });
      assert.deepEqual(data._unknowns_, waiting);
      assert.deepEqual(data.unknowns.toSorted(), Object.keys(waiting).toSorted());
      assert.equal(data.method, 'POST');
      const { id } = data;
      const { data: better } = await call(`${hook}.edit`, {
        id,
        method: 'PATCH',
        frequency: { mode: 'batch', every: '5m', max_bytes: 2048 },
        colour: null,
      });
      assert.equal(better.method, 'PATCH');
      assert.deepEqual(better.frequency, {
        ...{ mode: 'batch', every: '5m', max_events: 500, max_bytes: '2048' },
      });
      assert.deepEqual(Object.keys(better._unknowns_).toSorted(), [
        'headers',
        'order',
        'retry_limit',
      ]);
      const { data: sentBack } = await call(`${hook}.edit`, {
        ...better,
        headers: { 'X-Shop': 'a' },
      });
      assert.deepEqual(sentBack.headers, { 'X-Shop': 'a' });
      assert.deepEqual(Object.keys(sentBack._unknowns_).toSorted(), ['order', 'retry_limit']);
    });

    test('the answer to a write says what is wrong with each field', async (t) => {
      const call = await open(await startSite(t));
      const batch = (more: object) => ({ frequency: { mode: 'batch', ...more } });
      for (const [sent, field, reason, suggestion] of [
        [{ retrylimit: 3 }, 'retrylimit', 'unknown_field', 'retry_limit'],
        [{ colour: 'blue' }, 'colour', 'unknown_field'],
        [{ name: 7 }, 'name', 'wrong_type'],
        [{ name: '' }, 'name', 'out_of_range'],
        [{ name: 'a\nb' }, 'name', 'bad_format'],
        [{ method: 'PSOT' }, 'method', 'bad_format', 'POST'],
        [{ method: 1 }, 'method', 'wrong_type'],
        [{ retry_limit: 0 }, 'retry_limit', 'out_of_range'],
        [{ retry_limit: '10' }, 'retry_limit', 'wrong_type'],
        [{ retry: 60 }, 'retry', 'wrong_type'],
        [{ retry: ['5s', 5] }, 'retry', 'wrong_type'],
        [{ retry: ['5s', '60'] }, 'retry', 'bad_format', '60s'],
        [{ retry: 'soon' }, 'retry', 'bad_format'],
        [{ retry: [] }, 'retry', 'out_of_range'],
        [{ retry: ['500ms'] }, 'retry', 'out_of_range'],
        [{ retry: ['5s', '31d'] }, 'retry', 'out_of_range'],
        [{ retry: Array(101).fill('5s') }, 'retry', 'out_of_range'],
        [{ order: 'true' }, 'order', 'wrong_type'],
        [{ headers: 'X-Shop: a' }, 'headers', 'wrong_type'],
        [{ headers: { 'X Y': 'a' } }, 'headers.X Y', 'bad_format'],
        [{ headers: { Host: 'a' } }, 'headers.Host', 'bad_format'],
        [{ headers: { A: 1 } }, 'headers.A', 'wrong_type'],
        [{ headers: { A: 'a'.repeat(5_000) } }, 'headers.A', 'out_of_range'],
        [{ headers: { A: 'a', a: 'b' } }, 'headers.a', 'bad_format'],
        [{ active: 'maybe' }, 'active', 'wrong_type'],
        [{ where: '' }, 'where', 'out_of_range'],
        [{ filter: 'all' }, 'filter', 'wrong_type'],
        [{ filter: { total: { gt: true } } }, 'filter.total.gt', 'bad_format'],
        [{ filter: { total: { lte: 'x'.repeat(1_025) } } }, 'filter.total.lte', 'bad_format'],
        [{ filter: { shop: { in: 'a' } } }, 'filter.shop.in', 'bad_format'],
        [{ filter: { shop: { in: [] } } }, 'filter.shop.in', 'bad_format'],
        [{ filter: { shop: { in: Array(101).fill(1) } } }, 'filter.shop.in', 'bad_format'],
        [{ filter: { name: { contains: '' } } }, 'filter.name.contains', 'bad_format'],
        [{ filter: { name: { not: { not: 1 } } } }, 'filter.name.not', 'bad_format'],
        [{ filter: { name: { not: { in: 1 } } } }, 'filter.name.not.in', 'bad_format'],
        [{ filter: { total: { gt: 1, max: 3 } } }, 'filter.total.max', 'no_effect'],
        [{ table: 7 }, 'table', 'wrong_type'],
        [{ table: ['products', 7] }, 'table', 'wrong_type'],
        [{ table: [] }, 'table', 'out_of_range'],
        [{ table: ['webhok', 'customer'] }, 'table', 'no_effect', 'webhook'],
        [{ table: ['products', ''] }, 'table', 'out_of_range'],
        [{ frequency: 'each' }, 'frequency', 'wrong_type'],
        [{ frequency: {} }, 'frequency.mode', 'missing'],
        [{ frequency: { mode: 'bacth' } }, 'frequency.mode', 'bad_format', 'batch'],
        [{ frequency: { mode: 'each', every: '60s' } }, 'frequency.every', 'not_for_kind'],
        [batch({ every: '25h' }), 'frequency.every', 'out_of_range'],
        [batch({ every: 60 }), 'frequency.every', 'wrong_type', '60s'],
        [batch({ every: '60' }), 'frequency.every', 'bad_format', '60s'],
        [batch({ evry: '60s' }), 'frequency.evry', 'unknown_field', 'every'],
        [batch({ at: ['2:00'] }), 'frequency.at', 'bad_format'],
        [batch({ at: [] }), 'frequency.at', 'out_of_range'],
        [batch({ at: [2] }), 'frequency.at', 'wrong_type'],
        [batch({ at: ['02:00'], every: '60s' }), 'frequency.at', 'bad_format'],
        [batch({ at: ['02:00'], zone: 'Mars/Olympus' }), 'frequency.zone', 'bad_format'],
        [batch({ zone: 'UTC' }), 'frequency.zone', 'no_effect'],
        [batch({ max_events: 0 }), 'frequency.max_events', 'out_of_range'],
        [batch({ max_events: '7' }), 'frequency.max_events', 'wrong_type'],
        [batch({ max_bytes: '1TiB' }), 'frequency.max_bytes', 'out_of_range'],
      ] as const) {
        const { data } = await call(`${hook}.insert`, { ...shop, ...sent });
        assert.equal(data.problems.length, 1, JSON.stringify(sent));
        const [{ message, ...problem }] = data.problems;
        const expected = { field, reason, ...(suggestion !== undefined && { suggestion }) };
        assert.deepEqual(problem, expected, JSON.stringify(sent));
        assert.match(message, /[.?]$/);
        const [name = ''] = Object.keys(sent);
        assert.deepEqual(data.unknowns, reason === 'no_effect' ? [] : [name]);
        const pausing = ['active', 'where', 'frequency', 'filter', 'table'];
        const isPaused = pausing.includes(name) && reason !== 'no_effect';
        assert.equal(data.active, !isPaused, JSON.stringify(sent));
        assert.deepEqual(data.waits, isPaused ? [name] : undefined);
      }
    });

    test('a hook whose filter or frequency waits is paused until that is corrected', async (t) => {
      const site = await startSite(t);
      const call = await open(site);
      for (const [wrong, right] of [
        [{ frequency: { mode: 'batch', every: '25h' } }, { frequency: { mode: 'each' } }],
        [{ filter: 'id=S-1' }, { filter: { id: 'S-1' } }],
      ] as const) {
        const [name = ''] = Object.keys(wrong);
        const event = { type: `waits.${name}`, data: { id: 'S-1' } };
        const sent = { ...shop, event: event.type, ...wrong };
        const { id } = (await call(`${hook}.insert`, sent)).data;
        const read = (await call(`${hook}.read`, { id })).data;
        assert.deepEqual([read.active, read.waits], [false, [name]]);
        assert.equal((await call(`${hook}.test`, { id })).error?.code, 'conflict');
        const { error } = await call(`${hook}.resume`, { id });
        assert.deepEqual([error?.code, error?.field], ['conflict', name]);
        const list = (v: object) => call(`${hook}.list`, { event: event.type, ...v });
        assert.deepEqual((await list({ active: true })).data.rows, []);
        assert.deepEqual((await list({ active: false })).data.rows, [read]);
        // A hook with an unknown filter gets no events; one with an unknown frequency keeps them.
        const taken = (await call('svc1.event.insert', event, { vk: randomUUID() })).data;
        assert.equal(taken.hooks, name === 'filter' ? 0 : 1);
        const { data } = await call(`${hook}.edit`, { id, ...right });
        assert.deepEqual([data.active, data.waits, data.problems], [true, undefined, []]);
        assert.equal(data._unknowns_, undefined);
        assert.equal((await call('svc1.event.insert', event, { vk: randomUUID() })).data.hooks, 1);
      }
    });

    test('an edit that is not valid pauses a hook, and keeps the former value', async (t) => {
      const call = await open(await startSite(t));
      const frequency = { mode: 'batch', every: '5m' };
      const { id } = (await call(`${hook}.insert`, { ...shop, frequency })).data;
      const edited = await call(`${hook}.edit`, { id, frequency: { mode: 'batch', every: 60 } });
      assert.equal(edited.data.frequency.every, '5m');
      assert.equal(edited.data.active, false);
      const { data } = await call(`${hook}.edit`, { id, _unknowns_: null });
      assert.equal(data.active, true);
    });

    test('a batch can be sent at times of the day', async (t) => {
      const call = await open(await startSite(t));
      const at = (more: object) => ({ ...shop, frequency: { mode: 'batch', ...more } });
      const rest = { mode: 'batch', max_events: 500, max_bytes: '1MiB' };
      const sent = at({ at: ['14:30', '02:00', '14:30'], zone: 'Europe/Zurich' });
      const { data } = await call(`${hook}.insert`, sent);
      const zone = 'Europe/Zurich';
      assert.deepEqual(data.frequency, { ...rest, at: ['02:00', '14:30'], zone });
      const { data: other } = await call(`${hook}.insert`, at({ at: '02:00' }));
      assert.deepEqual(other.frequency, { ...rest, at: ['02:00'], zone: 'UTC' });
      assert.deepEqual(other.problems, []);
    });

    test('a header that cannot be sent waits alone', async (t) => {
      const call = await open(await startSite(t));
      const headers = { 'X-Shop': 'a', Host: 'b', 'X-Till': '7' };
      const { data } = await call(`${hook}.insert`, { ...shop, headers });
      assert.deepEqual(data.headers, { 'X-Shop': 'a', 'X-Till': '7' });
      assert.deepEqual(data._unknowns_, { headers: { Host: 'b' } });
      assert.equal(data.active, true);
      const { id } = data;
      const twice = { 'X-Shop': 'a', 'x-shop': 'b' };
      const { data: doubled } = await call(`${hook}.insert`, { ...shop, headers: twice });
      assert.deepEqual(doubled._unknowns_, { headers: { 'x-shop': 'b' } });
      const { data: kept } = await call(`${hook}.edit`, { id: doubled.id, name: 'till' });
      assert.deepEqual(kept.headers, { 'X-Shop': 'a' });
      const { data: renamed } = await call(`${hook}.edit`, { id, name: 'till' });
      assert.deepEqual(renamed.headers, data.headers);
      assert.deepEqual(renamed._unknowns_, data._unknowns_);
      const { data: replaced } = await call(`${hook}.edit`, { id, headers: { 'X-Shop': 'c' } });
      assert.deepEqual(replaced.headers, { 'X-Shop': 'c' });
      assert.equal(replaced._unknowns_, undefined);
    });

    test('a hook cannot set the header fields of the delivery itself', async (t) => {
      const call = await open(await startSite(t));
      for (const name of ['Host', 'content-length', 'Transfer-Encoding', 'webhook-id', 'a b', '']) {
        const { data } = await call(`${hook}.insert`, { ...shop, headers: { [name]: '1' } });
        assert.deepEqual(data.unknowns, ['headers'], name);
        assert.deepEqual(data.headers, {});
      }
      const { data } = await call(`${hook}.insert`, { ...shop, headers: { a: 'x\r\nHost: y' } });
      assert.deepEqual(data.unknowns, ['headers']);
    });

    test('an edit of a changed record is refused', async (t) => {
      const call = await open(await startSite(t));
      const { id, seq } = (await call(`${hook}.insert`, shop)).data;
      await call(`${hook}.edit`, { id, order: true });
      const late = await call(`${hook}.edit`, { id, if_seq: seq, order: false });
      assert.equal(late.error?.code, 'precondition_failed');
    });

    test('a hook is paused and resumed', async (t) => {
      const call = await open(await startSite(t));
      const { id } = (await call(`${hook}.insert`, shop)).data;
      assert.equal((await call(`${hook}.pause`, { id })).data.active, false);
      assert.equal((await call(`${hook}.read`, { id })).data.active, false);
      assert.equal((await call(`${hook}.test`, { id })).error?.code, 'conflict');
      assert.equal((await call(`${hook}.resume`, { id })).data.active, true);
      assert.equal((await call(`${hook}.resume`, { id: 'none' })).error?.code, 'not_found');
    });

    test('a new secret is shown once; a revert restores no former one', async (t) => {
      const site = await startSite(t);
      const call = await open(site);
      const { id, secret, seq } = (await call(`${hook}.insert`, shop)).data;
      const rotated = await call(`${hook}.rotate`, { id }, { vk: 'leaked' });
      assert.notEqual(rotated.data.secret, secret);
      const day = Date.parse(rotated.data.previous_until) - Date.now();
      assert.ok(day > 86_000_000 && day <= 86_400_000);
      const again = await call(`${hook}.rotate`, { id }, { vk: 'leaked' });
      const { secret: newest, ...rest } = rotated.data;
      assert.deepEqual([again.data, again.replayed], [rest, true]);
      const { data } = await call(`${hook}.read`, { id });
      assert.equal(data.seq, rotated.data.seq);
      assert.match(data.rotated_at, /Z$/);

      const since = { id, from: String(Number(seq) + 1) };
      const dry = await call(`${hook}.invalidate`, since);
      assert.equal(dry.data.rows, 1);
      await call(`${hook}.invalidate`, { ...since, confirm: dry.data.digest });
      assert.equal((await call(`${hook}.read`, { id })).data.rotated_at, undefined);
      const { id: other } = (await call(`${hook}.rotate`, { id })).data;
      assert.equal(other, id);
      assert.ok(newest);
    });

    test('a hook is deleted by a revert, and restored', async (t) => {
      const call = await open(await startSite(t));
      const { id } = (await call(`${hook}.insert`, shop)).data;
      const before = (await call(`${hook}.read`, { id })).data;
      const dry = await call(`${hook}.invalidate`, { id });
      assert.deepEqual([dry.data.records, dry.data.gone], [1, 1]);
      const done = await call(`${hook}.invalidate`, { id, confirm: dry.data.digest });
      assert.equal((await call(`${hook}.read`, { id })).error?.code, 'not_found');
      assert.deepEqual((await call(`${hook}.list`, {})).data.rows, []);
      const { txn } = done.data;
      const undo = await call(`${hook}.invalidate`, { txn });
      await call(`${hook}.invalidate`, { txn, confirm: undo.data.digest });
      const { seq: _seq, ...back } = (await call(`${hook}.read`, { id })).data;
      const { seq: _before, ...was } = before;
      assert.deepEqual(back, was);
    });

    test('an id of a hook is no page rule, and the reverse', async (t) => {
      const call = await open(await startSite(t));
      const { id } = (await call(`${hook}.insert`, shop)).data;
      for (const [name, v] of [
        ['svc1.userinterface.read', { id }],
        ['svc1.userinterface.invalidate', { id }],
      ] as const) {
        assert.equal((await call(name, v)).error?.code, 'not_found', name);
      }
      const all = await call('svc1.userinterface.invalidate', { from: '1' });
      assert.equal(all.data.records, 0);
    });

    test('hooks are listed by event type and state', async (t) => {
      const call = await open(await startSite(t));
      const insert = async (v: object) => (await call(`${hook}.insert`, v)).data.id as string;
      const sales = await insert({ ...shop, name: 'The "Sales" desk' });
      const all = await insert({ ...shop, event: '*', active: false });
      const found = async (v: object) => {
        const { rows, next } = (await call(`${hook}.list`, v)).data;
        return [rows.map(({ id }: { id: string }) => id), next];
      };
      assert.deepEqual(await found({ event: 'sale.completed' }), [[sales], null]);
      assert.deepEqual(await found({ active: false }), [[all], null]);
      assert.deepEqual(await found({ text: 'the "sales" DESK' }), [[sales], null]);
      assert.deepEqual(await found({ text: 'retry_limit' }), [[], null], 'no name of a field');
      assert.deepEqual(await found({ limit: 1 }), [[sales], sales]);
      assert.deepEqual(await found({ after: sales }), [[all], null]);
    });
  });
}
