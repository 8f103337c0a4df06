import assert from 'node:assert/strict';
import { test } from 'node:test';
import { uuidv7 } from 'uuidv7';
import type { FailureCode } from '../../../src/core/values/failure.ts';
import { FaultyProxy } from '../../faults/proxy.ts';
import { startSite, type TestSite } from '../../harness.ts';
import { runWaymark } from '../../process.ts';
import { openIn } from '../../core/log/scratch.ts';
import { eventually, startFollower } from './rig.ts';
import { outboxPart } from '../../../src/modules/nodes/log/outbox-entries.ts';

const MIB = 1024 * 1024;

/** The numbers of the stored sales, oldest first. */
async function soldAt(site: TestSite): Promise<readonly number[]> {
  const { data } = await site.call('svc1.event.list', { type: 'a.sale' });
  return (data as { rows: { data: { n: number } }[] }).rows.map((row) => row.data.n).toReversed();
}

/** A value that nests as deeply as an event may. */
function nested(levels: number): object {
  let value: object = {};
  for (let level = 1; level < levels; level += 1) value = { a: value };
  return value;
}

test('an outbox with more bytes than one request may have reaches the centre', async (t) => {
  const centre = await startSite(t);
  const proxy = await FaultyProxy.start(Number(new URL(centre.url).port));
  t.after(() => {
    proxy.close();
  });
  const properties = { no: { type: 'string' }, scan: { type: 'string' } };
  const table = { name: 'orders', schema: { type: 'object', properties }, key: 'no' };
  assert.equal((await centre.call('svc1.table.insert', table)).error, undefined);
  const v = { name: 'shop-7', scopes: ['follow', 'record.write'], node: 'shop-7' };
  const { data: made } = await centre.call('svc1.key.insert', v);
  const counter = await startFollower(t, centre, {
    ...{ name: 'shop-7', role: 'counter', key: made.key },
    central: { ...centre, url: `http://127.0.0.1:${proxy.port}` },
  });
  proxy.cut();
  const numbers = ['1', '2', '3', '4', '5'];
  for (const no of numbers) {
    const order = { table: 'orders', no, scan: 'x'.repeat(3.9 * MIB) };
    const { error } = await counter.call('svc1.record.insert', order, { apikey: centre.adminKey });
    assert.equal(error, undefined);
  }
  proxy.heal();
  await eventually(async () => {
    const { data } = await counter.call('svc1.server.status', {}, { apikey: centre.adminKey });
    const { waiting, refused, bytes } = data.node.central.outbox;
    assert.deepEqual({ waiting, refused, bytes }, { waiting: 0, refused: 0, bytes: 0 });
  });
  const { data } = await centre.call('svc1.server.status', {});
  assert.equal(data.counts.rows, numbers.length);
});

test('an entry because of which the centre takes no request is set aside', async (t) => {
  const centre = await startSite(t);
  const counter = await startFollower(t, centre, { name: 'shop-7', role: 'counter' });
  const apikey = centre.adminKey;
  for (const n of [1, 2, 3, 4]) {
    // The envelope of the counter's request adds some levels.
    const data = { n, ...(n === 3 && { deep: nested(60) }) };
    const { error } = await counter.call('svc1.event.insert', { type: 'a.sale', data }, { apikey });
    assert.equal(error, undefined);
  }
  await eventually(async () => {
    assert.deepEqual(await soldAt(centre), [1, 2, 4]);
    const { data } = await counter.call('svc1.outbox.list', { refused: true }, { apikey });
    assert.deepEqual([data.waiting, data.refused], [0, 1]);
    assert.deepEqual(data.rows[0].refused.code, 'too_large');
  });
});

/** Puts entries into the outbox of a site that the centre has refused. */
async function refuse(site: TestSite, codes: readonly FailureCode[]): Promise<void> {
  const store = await openIn(`${site.folder}/data`);
  const at = new Date().toISOString();
  const entries = await Promise.all(
    codes.map(() =>
      store.part(outboxPart).put(() => ({
        ...{ id: uuidv7(), a: 'svc1.event.insert', v: { type: 'a.sale', data: {} } },
        ...{ dtu_txn: at, by: 'test' },
      })),
    ),
  );
  await store.part(outboxPart).settle(
    entries.map((entry, nth) => ({
      n: entry?.n ?? 0,
      refused: { code: codes[nth] ?? 'invalid', message: 'No.', at },
    })),
  );
  await store.close();
}

test('all refused entries, or those with a code, are sent again or removed at once', async (t) => {
  const site = await startSite(t);
  const lacking = Array.from({ length: 2_100 }, () => 'forbidden' as const);
  await refuse(site, ['invalid', ...lacking, 'invalid']);
  const outbox = (...words: readonly string[]) =>
    runWaymark(['outbox', ...words, '--url', site.url, '--apikey', site.adminKey]);
  const counts = async (): Promise<readonly number[]> => {
    const { data } = await site.call('svc1.outbox.list', { refused: true, code: 'forbidden' });
    return [data.waiting, data.refused, data.rows.length];
  };
  const none = await outbox('retry');
  assert.equal(none.code, 2);
  assert.match(none.err, /Say which entries: the number of one, or --all\./);
  const refused = await site.call('svc1.outbox.retry', { n: 1, all: true });
  assert.equal(refused.error?.code, 'invalid');
  const retried = await outbox('retry', '--all', '--code', 'forbidden');
  assert.equal(retried.err, '1000 wait again so far.\n2000 wait again so far.\n2100 wait again.\n');
  assert.deepEqual(await counts(), [2_100, 2, 0]);
  assert.equal((await outbox('discard', '1')).err, '1 removed.\n');
  assert.equal((await outbox('discard', '--all')).err, '1 removed.\n');
  assert.deepEqual(await counts(), [2_100, 0, 0]);
  assert.equal((await outbox('discard', '--all')).err, '0 removed.\n');
});

/** The number and bytes of entries in the outbox of a counter, and its bounds. */
async function fill(counter: TestSite, apikey: string): Promise<Readonly<Record<string, number>>> {
  const { data } = await counter.call('svc1.server.status', {}, { apikey });
  return data.node.central.outbox as Readonly<Record<string, number>>;
}

for (const [key, ini, reached] of [
  ['outbox_entries = 3', 'outbox_entries = 3', 3],
  ['outbox_size = 2KiB', 'outbox_size = 2KiB', 2],
] as const) {
  test(`a full outbox stores nothing more, and names the key: ${key}`, async (t) => {
    const centre = await startSite(t);
    const { adminKey: apikey } = centre;
    const counter = await startFollower(t, centre, { name: 'shop-7', role: 'counter', ini });
    await centre.waymark.stop(0);
    const data = { text: 'ä'.repeat(300) };
    const sell = (vk: string) =>
      counter.call('svc1.event.insert', { type: 'a.sale', data }, { apikey, vk });
    for (let n = 1; n <= reached; n += 1) assert.equal((await sell(`${n}`)).error, undefined);
    const before = await fill(counter, apikey);
    assert.equal(before.waiting, reached);
    assert.ok((before.bytes ?? 0) > reached * 600);
    const { error } = await sell('more');
    assert.equal(error?.code, 'unavailable');
    assert.match(error.message, new RegExp(`^The outbox .* full \\(\`${key}\` in \\[node\\]`));
    assert.equal((await sell('1')).replayed, true, 'it has this one');
    assert.deepEqual(await fill(counter, apikey), before);
    const metrics = await (await fetch(`${counter.url}/svc1/metrics`)).text();
    assert.match(metrics, new RegExp(`waymark_outbox_bytes ${before.bytes}\\n`));
    assert.match(metrics, new RegExp(`waymark_outbox_entries_max ${before.entries_max}\\n`));
    assert.match(metrics, new RegExp(`waymark_outbox_bytes_max ${before.bytes_max}\\n`));
  });
}

test('the outbox counts the bytes of what waits and of what was refused', async (t) => {
  const site = await startSite(t);
  await refuse(site, ['invalid', 'forbidden']);
  const store = await openIn(`${site.folder}/data`);
  t.after(() => store.close());
  const stored = (): number =>
    [
      ...store.part(outboxPart).waiting(9),
      ...store.part(outboxPart).refused({ after: 0, limit: 9 }),
    ]
      .map((entry) => JSON.stringify(entry).length)
      .reduce((sum, length) => sum + length, 0);
  assert.ok(stored() > 200);
  assert.equal(store.part(outboxPart).counts().bytes, stored());
  await store.part(outboxPart).retry(1);
  assert.equal(store.part(outboxPart).counts().bytes, stored());
  await store.part(outboxPart).discard(2);
  assert.equal(store.part(outboxPart).counts().bytes, stored());
  await store.part(outboxPart).settle([{ n: 3, seq: 1 }]);
  assert.deepEqual(store.part(outboxPart).counts(), { waiting: 0, refused: 0, bytes: 0 });
});
