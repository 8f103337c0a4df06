import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { startSite, type Answer } from '../../harness.ts';
import { transports } from '../transports.ts';

const hook = 'svc1.webhook';
const shop = { event: ['sale.completed'], url: 'https://shop.example/hooks' };

/** What stands in a hook by itself. */
const standard = {
  method: 'POST',
  headers: {},
  frequency: { mode: 'each' },
  filter: {},
  order: false,
  retry_limit: 10,
  active: true,
};

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

    test('the answer to an insert makes another hook, which does not show its secret', async (t) => {
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

    test('what decides where an event goes has to be valid, all else waits until it is', async (t) => {
      const call = await open(await startSite(t));
      for (const [field, value] of [
        ['url', 'ftp://shop.example/'],
        ['url', 'https://user:word@shop.example/'],
        ['url', '/hooks'],
        ['event', []],
        ['event', ['Sale']],
        ['event', 'sale'],
        ['filter', 'all'],
        ['active', 'maybe'],
        ['where', ''],
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
      const sent = { ...shop, retrylimit: 3, colour: 'blue' };
      const { data } = await call(`${hook}.insert`, sent);
      const problem = { field: 'retrylimit', reason: 'unknown_field', suggestion: 'retry_limit' };
      const { message, ...first } = data.problems[0];
      assert.deepEqual(first, problem);
      assert.match(message, /Did you mean retry_limit\?/);
      assert.deepEqual(data.problems[1], {
        field: 'colour',
        reason: 'unknown_field',
        message: 'There is no field of this name; it is kept in _unknowns_.',
      });
      const { data: edited } = await call(`${hook}.edit`, { id: data.id, retrylimit: null });
      assert.deepEqual(edited.problems, []);
      assert.deepEqual(edited._unknowns_, { colour: 'blue' });
    });

    test('fields that the delivery has of its own cannot be a hook’s', async (t) => {
      const call = await open(await startSite(t));
      for (const name of ['Host', 'content-length', 'Transfer-Encoding', 'webhook-id', 'a b', '']) {
        const { data } = await call(`${hook}.insert`, { ...shop, headers: { [name]: '1' } });
        assert.deepEqual(data.unknowns, ['headers'], name);
        assert.deepEqual(data.headers, {});
      }
      const { data } = await call(`${hook}.insert`, { ...shop, headers: { a: 'x\r\nHost: y' } });
      assert.deepEqual(data.unknowns, ['headers']);
    });

    test('an edit that comes too late is refused', async (t) => {
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

    test('a new secret is shown once; taking changes back brings no old one back', async (t) => {
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

    test('a hook is taken back, and that is taken back', async (t) => {
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

    test('page rules and hooks are not taken for one another', async (t) => {
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

    test('hooks are listed by what they ask for', async (t) => {
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
