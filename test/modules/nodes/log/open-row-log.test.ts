import { openData } from '../../../../src/cli/open-data.ts';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { uuidv7 } from 'uuidv7';
import { purgeSecrets } from '../../../../src/modules/upkeep/purge.ts';
import type { Store } from '../../../../src/core/log/store.ts';
import type { Difference } from '../../../../src/modules/upkeep/verify/log-fold.ts';
import { temporaryFolder } from '../../../folder.ts';
import { commit, edited, inserted, openIn, scratchStore } from '../../../core/log/scratch.ts';
import { rowLogPart } from '../../../../src/modules/nodes/log/open-row-log.ts';
import { upkeep } from '../../../../src/modules/upkeep/upkeep.ts';
import { storedHooks } from '../../../../src/modules/webhooks/log/family.ts';
import { storedRules } from '../../../../src/modules/rules/log/family.ts';

const all = { rows: 1_000, characters: Infinity };

/** A store with rules, an edit, an undo, a key, a hook with two secrets, and an event. */
async function centreOf(store: Store): Promise<Store> {
  await commit(store, inserted('r1', { path: '/a' }), inserted('r2', { path: '/b/*' }));
  await commit(store, edited('r1', { path: '/c', content: 'ü "quoted" \u2028' }));
  await commit(store, {
    family: 'userinterface',
    id: 'r1',
    action: 'invalidate',
    data: { rows: [3] },
  });
  const key = { name: 'k', scopes: ['read'], hash: 'a'.repeat(64), created: '2026-01-01' };
  await commit(store, { family: 'key', id: 'k1', action: 'insert', data: key });
  const hook = { event: ['*'], url: 'http://a.example/', method: 'POST', headers: {}, filter: {} };
  const secret = (data: string) => ({ secret: `whsec_${Buffer.from(data).toString('base64')}` });
  await commit(
    store,
    { family: 'webhook', id: 'h1', action: 'insert', data: { ...hook, active: true } },
    { family: 'secret', id: 'secret:h1', action: 'insert', data: secret('first'.repeat(6)) },
  );
  await commit(store, {
    family: 'secret',
    id: 'secret:h1',
    action: 'edit',
    data: { ...secret('other'.repeat(6)), until: '2099-01-01T00:00:00.000Z' },
  });
  const event = { type: 'a.b', occurred_at: '2026-01-01T00:00:00.000Z', data: { n: 1 } };
  await commit(store, { family: 'event', id: 'e1', action: 'insert', data: event });
  return store;
}

async function copyOf(centre: Store, copy: Store): Promise<Store> {
  await copy.part(rowLogPart).follow(centre.part(rowLogPart).identity(), 'https://centre.example');
  await copy.part(rowLogPart).append(centre.part(rowLogPart).rows(0, all));
  return copy;
}

async function differences(store: Store): Promise<readonly Difference[]> {
  const found: Difference[] = [];
  for await (const { differences: some } of store.part(upkeep).verify()) found.push(...some);
  return found;
}

test('a copy of the rows has the same records, seqs, times and digest', async (t) => {
  const centre = await centreOf(await scratchStore(t));
  const copy = await copyOf(centre, await scratchStore(t));
  assert.equal(copy.seq(), centre.seq());
  for (let seq = 1; seq <= centre.seq(); seq += 1) {
    const { family, data, ...row } = centre.change(seq) ?? assert.fail();
    const isSecret = family === 'secret';
    assert.deepEqual(copy.change(seq), { ...row, family, data: isSecret ? {} : data });
    assert.equal(
      await copy.part(rowLogPart).digest(seq),
      await centre.part(rowLogPart).digest(seq),
    );
  }
  assert.deepEqual(copy.of(storedRules).rule('r1'), centre.of(storedRules).rule('r1'));
  assert.equal(copy.inForce(3), false);
  assert.deepEqual(
    copy.of(storedRules).exactRules('*', '/a'),
    centre.of(storedRules).exactRules('*', '/a'),
  );
  assert.deepEqual(copy.keys(), centre.keys());
  assert.deepEqual(copy.of(storedHooks).hook('h1'), centre.of(storedHooks).hook('h1'));
  assert.deepEqual(await differences(copy), []);
  assert.ok(copy.part(rowLogPart).has(centre.part(rowLogPart).end()));
});

test('a copy has the secrets of a hook only after it has received them', async (t) => {
  const centre = await centreOf(await scratchStore(t));
  const copy = await copyOf(centre, await scratchStore(t));
  assert.equal(copy.of(storedHooks).hookSecret('h1'), undefined);
  assert.doesNotMatch(copy.part(rowLogPart).withheldRows('h1').join(), /whsec_/);
  const stamp = copy.of(storedHooks).hooksStamp();
  await copy.part(rowLogPart).reveal(centre.part(rowLogPart).withheldRows('h1'));
  assert.deepEqual(copy.of(storedHooks).hookSecret('h1'), centre.of(storedHooks).hookSecret('h1'));
  assert.notEqual(copy.of(storedHooks).hooksStamp(), stamp);
  assert.deepEqual(await differences(copy), []);
  const { seq } = centre.counts();
  assert.equal(await copy.part(rowLogPart).digest(seq), await centre.part(rowLogPart).digest(seq));
});

test('a copy has header values of a hook only after it has received them', async (t) => {
  const centre = await centreOf(await scratchStore(t));
  const fields = (value: string) => ({
    headers: { authorization: `Bearer ${value}`, 'x-shop': '7' },
  });
  const edit = { family: 'webhook', id: 'h1', action: 'edit' } as const;
  await commit(centre, { ...edit, data: fields('first') });
  await commit(centre, { ...edit, data: { ...fields('second'), _unknowns_: fields('third') } });
  const copy = await copyOf(centre, await scratchStore(t));
  const { seq } = centre.counts();
  const texts = () => Array.from({ length: seq }, (_, at) => JSON.stringify(copy.change(at + 1)));
  assert.doesNotMatch(texts().join(), /Bearer/);
  assert.deepEqual(copy.of(storedHooks).hook('h1')?.hook.headers, {
    ...{ authorization: '[withheld]', 'x-shop': '[withheld]' },
  });
  assert.deepEqual(await differences(copy), []);
  assert.equal(await copy.part(rowLogPart).digest(seq), await centre.part(rowLogPart).digest(seq));
  await copy.part(rowLogPart).reveal(centre.part(rowLogPart).withheldRows('h1'));
  assert.deepEqual(copy.of(storedHooks).hook('h1'), centre.of(storedHooks).hook('h1'));
  assert.deepEqual(await differences(copy), []);
  assert.equal(await copy.part(rowLogPart).digest(seq), await centre.part(rowLogPart).digest(seq));
  assert.doesNotMatch(copy.part(rowLogPart).rows(0, all).join(), /Bearer/);
  const stamp = copy.of(storedHooks).hooksStamp();
  await copy.part(rowLogPart).reveal(centre.part(rowLogPart).withheldRows('h1'));
  assert.equal(copy.of(storedHooks).hooksStamp(), stamp);
});

test('a copy gets events whole, whatever members their data has', async (t) => {
  const centre = await scratchStore(t);
  const data = { family: 'secret', type: 'a.b', data: { family: 'webhook', headers: { a: 'b' } } };
  await commit(centre, { family: 'event', id: 'e1', action: 'insert', data });
  const copy = await copyOf(centre, await scratchStore(t));
  assert.deepEqual(copy.change(1)?.data, data);
});

test('rows of a family that this version does not know are kept as they are', async (t) => {
  const centre = await centreOf(await scratchStore(t));
  const copy = await copyOf(centre, await scratchStore(t));
  const seq = copy.seq() + 1;
  const made = {
    ...{ seq, dtu_txn: '2026-01-01T00:00:00.000Z', dtu_stored: '2099-01-01T00:00:00.000Z' },
    ...{ by: 'k1', txn: uuidv7(), family: 'voucher', id: 'v1', action: 'redeem', data: { at: 1 } },
    signed: 'by a later version',
  };
  const text = JSON.stringify(made);
  const rule = { ...made, seq: seq + 1, family: 'userinterface', id: 'r9', action: 'insert' };
  const data = { origin: '*', path: '/new', kind: 'content', colour: 'unknown' };
  await copy.part(rowLogPart).append([text, JSON.stringify({ ...rule, data })]);
  assert.deepEqual(copy.part(rowLogPart).rows(seq - 1, { rows: 1, characters: 1 }), [text]);
  assert.deepEqual(copy.of(storedRules).rule('r9')?.rule, { id: 'r9', ...data });
  assert.deepEqual(await differences(copy), []);
});

test('rows that do not continue the log are refused, and none of them is written', async (t) => {
  const centre = await centreOf(await scratchStore(t));
  const copy = await scratchStore(t);
  await copy.part(rowLogPart).follow(centre.part(rowLogPart).identity(), 'https://centre.example');
  const rows = centre.part(rowLogPart).rows(0, all);
  await assert.rejects(copy.part(rowLogPart).append(rows.slice(1)), { code: 'conflict' });
  await assert.rejects(copy.part(rowLogPart).append([...rows.slice(0, 2), ...rows.slice(3)]), {
    code: 'conflict',
  });
  assert.equal(copy.seq(), 0);
});

test('a copy takes no changes of its own, and a log with changes becomes no copy', async (t) => {
  const centre = await centreOf(await scratchStore(t));
  const copy = await copyOf(centre, await scratchStore(t));
  await assert.rejects(commit(copy, inserted('r3', { path: '/d' })), {
    code: 'conflict',
    message: /copy of that of https:\/\/centre\.example/,
  });
  await assert.rejects(
    centre.part(rowLogPart).follow({ id: uuidv7(), generation: 0 }, 'https://other.example'),
    {
      code: 'conflict',
    },
  );
  await copy.part(rowLogPart).renew(uuidv7());
  await commit(copy, inserted('r3', { path: '/d' }));
});

test('a log that was restored from a backup, or purged, is another one', async (t) => {
  const folder = await temporaryFolder(t);
  const centre = await centreOf(await openIn(folder));
  const copy = await copyOf(centre, await scratchStore(t));
  await commit(centre, inserted('r5', { path: '/e' }));
  assert.ok(centre.part(rowLogPart).has(copy.part(rowLogPart).end()));
  const { log, seq, txn } = centre.part(rowLogPart).end();
  assert.equal(copy.part(rowLogPart).has({ log, seq, txn }), false);
  assert.equal(centre.part(rowLogPart).has({ log, seq, txn: uuidv7() }), false);
  const hook = { secret: `whsec_${Buffer.alloc(30).toString('base64')}` };
  await commit(centre, { family: 'secret', id: 'secret:h1', action: 'edit', data: hook });
  await centre.close();
  const parts = { folder, now: Date.now, newId: uuidv7, by: 'test', openStore: openData };
  assert.notEqual(
    (await purgeSecrets({ ...parts, selects: () => true, dryRun: false })).seq,
    undefined,
  );
  const purged = await openIn(folder);
  assert.equal(purged.part(rowLogPart).has(copy.part(rowLogPart).end()), false);
  await purged.close();
});
