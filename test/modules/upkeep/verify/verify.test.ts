import { families } from '../../../../src/families.ts';
import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, suite, test } from 'node:test';
import fc from 'fast-check';
import {
  type Databases,
  openDatabases,
  openEnvironment,
} from '../../../../src/core/log/databases.ts';
import { historyKey, historyPrefix, keyOf } from '../../../../src/core/log/encoding.ts';
import type { Store } from '../../../../src/core/log/store.ts';
import { verifyData } from '../../../../src/modules/upkeep/verify/verify.ts';
import { secretRecordId } from '../../../../src/modules/webhooks/hook.ts';
import { dueKey, eventKey } from '../../../../src/modules/webhooks/log/deliveries.ts';
import { commit, edited, inserted, scratchStore, startWriter } from '../../../core/log/scratch.ts';
import { temporaryFolder } from '../../../folder.ts';
import { deliveriesPart } from '../../../../src/modules/webhooks/log/delivery-log.ts';
import { upkeep } from '../../../../src/modules/upkeep/upkeep.ts';
import { storedRules } from '../../../../src/modules/rules/log/family.ts';

const hash = 'f'.repeat(64);

const hookData = { event: ['a.b'], url: 'https://x.example/', method: 'POST', filter: {} };

/**
 * Page rules that were moved, invalidated and restored; keys, one of them revoked; a hook with its
 * secret and deliveries, an invalidated hook; and events.
 */
async function writeSample(store: Store): Promise<void> {
  const vk = { vk: 'v', requestHash: hash };
  await commit(store, { ...inserted('a', { path: '/a' }), vk }, inserted('b', { path: '/b/*' }));
  await commit(store, edited('a', { path: '/moved*', lang: 'en' }));
  await commit(store, inserted('c', { path: '/c' }), edited('c', { rve: 1 }));
  await commit(store, takenBack('c', 4, 5));
  await commit(store, takenBack('a', 3), takenBack('c', 6));
  for (const id of ['key', 'former']) {
    const data = { name: id, scopes: ['read'], hash: `${id}${hash}`, created: '2026' };
    await commit(store, { family: 'key', id, action: 'insert', data });
  }
  await commit(store, { family: 'key', id: 'former', action: 'invalidate', data: {} });
  for (const id of ['hook', 'past']) {
    const data = { ...hookData, event: ['a.b', 'c.d'] };
    const secret = { family: 'secret', id: secretRecordId(id), action: 'insert' } as const;
    await commit(
      store,
      { family: 'webhook', id, action: 'insert', data },
      { ...secret, data: { secret: 'one' } },
    );
  }
  const until = '2026-11-21T12:00:00.000Z';
  const rotated = { secret: 'two', until };
  const secret = { family: 'secret', id: secretRecordId('hook'), action: 'edit' } as const;
  await commit(store, { ...secret, data: rotated });
  await commit(store, { family: 'webhook', id: 'hook', action: 'edit', data: { event: ['a.b'] } });
  await commit(store, {
    family: 'webhook',
    id: 'past',
    action: 'invalidate',
    data: { rows: [14] },
  });
  await commit(store, { family: 'event', id: 'event', action: 'insert', data: { type: 'a.b' } });
  await deliverSample(store);
  await commit(store, inserted('d', { path: '/d' }), inserted('e', { path: '/d' }));
  await commit(store, inserted('f', { path: '/f/*' }), inserted('g', { path: '/f/*' }));
}

/** Events for the hook: delivered, given up, waiting for a retry, and queued. */
async function deliverSample(store: Store): Promise<void> {
  const deliveries = store.part(deliveriesPart);
  const event = { family: 'event', action: 'insert', data: { type: 'a.b' } } as const;
  for (const id of ['e2', 'e3', 'e4']) await commit(store, { ...event, id });
  await deliveries.begin();
  await deliveries.dispatch({ role: 'all', name: '' });
  const [queue = 0] = deliveries.queues();
  const at = '2026-11-21T12:00:00.000Z';
  for (const [index, { n, logSeq }] of deliveries.queued(queue, 0, 3).entries()) {
    const outcome = (['completed', 'exhausted', 'failed'] as const)[index] ?? 'failed';
    const due = outcome === 'failed' ? { dueMs: 5 } : {};
    const record = { logSeqs: [logSeq], attempt: 1, tries: 1, at, outcome, ms: 1, ...due };
    await deliveries.record({ queue, n, record, wasDueMs: undefined }, 1);
  }
}

function takenBack(id: string, ...rows: readonly number[]) {
  return { family: 'userinterface', id, action: 'invalidate', data: { rows: [...rows] } } as const;
}

async function verified(store: Store): Promise<readonly string[]> {
  const found: string[] = [];
  let last;
  for await (const verification of store.part(upkeep).verify()) {
    found.push(...verification.differences.map(({ database, what }) => `${database}: ${what}`));
    last = verification;
  }
  assert.ok(last !== undefined && last.checked > 0);
  if (found.length === 0) assert.equal(last.checked, last.of, 'every entry was looked at');
  return found;
}

/** The findings in the sample after a change of its databases. */
async function afterDamage(
  t: TestContext,
  damage: (databases: Databases) => void,
): Promise<readonly string[]> {
  const folder = await temporaryFolder(t);
  const store = await scratchStore(t, { folder });
  await writeSample(store);
  await store.close();
  const environment = openEnvironment(folder);
  environment.transactionSync(() => {
    damage(openDatabases(environment));
  });
  await environment.close();
  return verified(await scratchStore(t, { folder }));
}

const uuid = /[0-9a-f]{8}-[0-9a-f-]{27}/g;
const at = (path: string) => Buffer.from(`*\0${path}`);
const packedB = '["b",2,2,"content",null,null,null]';

/** Kinds of damage, each with all its findings. */
const damages: readonly {
  readonly name: string;
  readonly damage: (databases: Databases) => void;
  readonly says: readonly string[];
}[] = [
  {
    name: 'several rules of a place without their mark',
    damage: ({ exact }) => exact.removeSync(at('/d'), '!'),
    says: ['exact: * /d: the mark of several rules is missing'],
  },
  {
    name: 'several rules of a wildcard without their mark',
    damage: ({ wildcard }) => wildcard.removeSync(at('/f/'), '~'),
    says: ['wildcard: * /f/: the mark of several rules is missing'],
  },
  {
    name: 'a mark at a place with one rule',
    damage: ({ wildcard }) => {
      wildcard.putSync(at('/b/'), '~');
    },
    says: ['wildcard: * /b/: the mark of several rules is not in the fold of the log'],
  },
  {
    name: 'a mark at a place without rules',
    damage: ({ exact }) => {
      exact.putSync(at('/nothing'), '!');
    },
    says: ['exact: * /nothing: the mark of several rules is not in the fold of the log'],
  },
  {
    name: 'a changed rule',
    damage: ({ rule }) => {
      const text = rule.get(keyOf('b')) ?? '';
      rule.putSync(keyOf('b'), text.replace('"kind":"content"', '"kind":"content","lang":"de"'));
    },
    says: ['rule: b differs from the fold of the log'],
  },
  {
    name: 'a newest seq beyond the log',
    damage: ({ meta }) => {
      meta.putSync('seq', '9');
    },
    says: ['meta: has 9 as the newest change, but the log ends with 26'],
  },
  {
    name: 'a missing rule',
    damage: ({ rule }) => rule.removeSync(keyOf('b')),
    says: ['rule: b is missing'],
  },
  {
    name: 'a rule that is not in the log',
    damage: ({ rule }) => {
      rule.putSync(keyOf('x'), JSON.stringify({ rule: { id: 'x' }, seq: 1, insertedSeq: 1 }));
    },
    says: ['rule: x is not in the fold of the log'],
  },
  {
    name: 'a rule that is not JSON',
    damage: ({ rule }) => {
      rule.putSync(keyOf('b'), '{');
    },
    says: ['rule: b differs from the fold of the log'],
  },
  {
    name: 'a missing index entry',
    damage: ({ wildcard }) => wildcard.removeSync(at('/b/'), packedB),
    says: ['wildcard: * /b/: ["b",2,2,"content",null,null,null] is missing'],
  },
  {
    name: 'an index entry at a former place',
    damage: ({ wildcard }) => {
      wildcard.putSync(at('/moved'), '["a",3,1,"content","en",null,null]');
    },
    says: ['wildcard: * /moved: ["a",3,1,"content","en",null,null] is not in the fold of the log'],
  },
  {
    name: 'a missing former place',
    damage: ({ everwildcard }) => everwildcard.removeSync(at('/moved'), 'a'),
    says: ['everwildcard: * /moved: a is missing'],
  },
  {
    name: 'a former place where the rule never was',
    damage: ({ everexact }) => {
      everexact.putSync(at('/never'), 'b');
    },
    says: ['everexact: * /never: b is not in the fold of the log'],
  },
  {
    name: 'a row that is missing in the history',
    damage: ({ history }) => history.removeSync(historyKey(historyPrefix('b'), 2)),
    says: ['history: change 2 of b is missing'],
  },
  {
    name: 'a row in the history of another record',
    damage: ({ history }) => {
      history.putSync(historyKey(historyPrefix('b'), 1), '1');
    },
    says: ['history: change 1 of b is not in the fold of the log'],
  },
  {
    name: 'a missing mark',
    damage: ({ mark }) => mark.removeSync(3),
    says: ['mark: change 3 is missing'],
  },
  {
    name: 'a mark without an invalidate',
    damage: ({ mark }) => {
      mark.putSync(2, '5');
    },
    says: ['mark: change 2 is not in the fold of the log'],
  },
  {
    name: 'a mark beyond the log',
    damage: ({ mark }) => {
      mark.putSync(99, '5');
    },
    says: ['mark: change 99 is not in the fold of the log'],
  },
  {
    name: 'a transaction with a wrong end',
    damage: ({ log, txn }) => {
      const { txn: name } = JSON.parse(log.get(1) ?? '') as { txn: string };
      txn.putSync(keyOf(name), '1 3');
    },
    says: ['txn: … differs from the fold of the log: 1 3, not 1 2'],
  },
  {
    name: 'a transaction without changes',
    damage: ({ txn }) => {
      txn.putSync(keyOf('nobody'), '1 2');
    },
    says: ['txn: nobody is not in the fold of the log'],
  },
  {
    name: 'a gap in the log',
    damage: ({ log }) => log.removeSync(3),
    says: [
      'log: change 3 is missing before 4',
      'history: change 3 of a is not in the fold of the log',
      'txn: … is not in the fold of the log',
      'everwildcard: * /moved: a is not in the fold of the log',
    ],
  },
  {
    name: 'a change that cannot be read',
    damage: ({ log }) => {
      log.putSync(26, '{');
    },
    says: [
      'log: change 26 cannot be read, or has another seq',
      'history: change 26 of g is not in the fold of the log',
      'txn: … differs from the fold of the log: 25 26, not 25 25',
      'rule: g is not in the fold of the log',
      'wildcard: * /f/: ["g",26,26,"content",null,null,null] is not in the fold of the log',
      'wildcard: * /f/: the mark of several rules is not in the fold of the log',
      'everwildcard: * /f/: g is not in the fold of the log',
    ],
  },
  {
    name: 'a change of a record that does not exist',
    damage: ({ log }) => {
      log.putSync(3, (log.get(3) ?? '').replace('"id":"a"', '"id":"x"'));
    },
    says: [
      'log: change 3 cannot follow the changes before: x cannot be edited, it does not exist',
      'history: change 3 of a is not in the fold of the log',
      'txn: … is not in the fold of the log',
      'everwildcard: * /moved: a is not in the fold of the log',
    ],
  },
  {
    name: 'a vk of a change that does not exist',
    damage: ({ vk }) => {
      vk.putSync(keyOf('v'), `99 ${hash}`);
    },
    says: ['vk: v refers to change 99, which the log does not have'],
  },
  {
    name: 'a missing key',
    damage: ({ key }) => key.removeSync(keyOf('key')),
    says: ['key: key is missing'],
  },
  {
    name: 'a hash of a revoked key',
    damage: ({ keyhash }) => {
      keyhash.putSync(keyOf(`former${hash}`), 'former');
    },
    says: [`keyhash: former${hash} is not in the fold of the log`],
  },
  {
    name: 'a missing hash',
    damage: ({ keyhash }) => keyhash.removeSync(keyOf(`key${hash}`)),
    says: [`keyhash: key${hash} is missing`],
  },
  {
    name: 'a changed hook',
    damage: ({ hook }) => {
      const text = hook.get(keyOf('hook')) ?? '';
      hook.putSync(keyOf('hook'), text.replace('x.example', 'y.example'));
    },
    says: ['hook: hook differs from the fold of the log'],
  },
  {
    name: 'an invalidated hook',
    damage: ({ hook }) => {
      const text = hook.get(keyOf('hook')) ?? '';
      hook.putSync(keyOf('past'), text.replace('"id":"hook"', '"id":"past"'));
    },
    says: ['hook: past is not in the fold of the log'],
  },
  {
    name: 'a hook that is not in the log',
    damage: ({ hook }) => {
      hook.putSync(keyOf('x'), JSON.stringify({ hook: { id: 'x' }, seq: 1, insertedSeq: 1 }));
    },
    says: ['hook: x is not in the fold of the log'],
  },
  {
    name: 'an invalidated row of a hook without its mark',
    damage: ({ mark }) => mark.removeSync(14),
    says: ['mark: change 14 is missing'],
  },
  {
    name: 'a hook that is missing under its event type',
    damage: ({ hooktype }) => hooktype.removeSync(keyOf('a.b'), 'hook'),
    says: ['hooktype: a.b: hook is missing'],
  },
  {
    name: 'a hook under an event type that it does not subscribe to',
    damage: ({ hooktype }) => {
      hooktype.putSync(keyOf('c.d'), 'hook');
    },
    says: ['hooktype: c.d: hook is not in the fold of the log'],
  },
  {
    name: 'a changed secret',
    damage: ({ hooksecret }) => {
      hooksecret.putSync(keyOf('hook'), '{"secret":"three"}');
    },
    says: ['hooksecret: hook differs from the fold of the log'],
  },
  {
    name: 'a secret that is not in the log',
    damage: ({ hooksecret }) => {
      hooksecret.putSync(keyOf('nobody'), '{"secret":"three"}');
    },
    says: ['hooksecret: nobody is not in the fold of the log'],
  },
  {
    name: 'an event in the queue of a missing hook',
    damage: ({ pending, lane }) => {
      pending.putSync(eventKey(99, 1), '19');
      lane.putSync(99, '1');
    },
    says: [
      'pending: message 1 of queue 99 does not belong to a hook',
      'lane: change 99 does not belong to a hook',
    ],
  },
  {
    name: 'an event beyond the newest one of its hook',
    damage: ({ pending }) => {
      pending.putSync(eventKey(12, 9), '19');
    },
    says: ["pending: message 9 of queue 12 is beyond the hook's newest event, 4"],
  },
  {
    name: 'a queue entry of a change that is not an event',
    damage: ({ pending }) => {
      pending.putSync(eventKey(12, 4), '13');
    },
    says: ['pending: message 4 of queue 12 refers to change 13, which is not an event'],
  },
  {
    name: 'an attempt whose retry is not due',
    damage: ({ due }) => due.removeSync(dueKey(12, 5, 3)),
    says: ['attempt: message 3 of queue 12 has a retry that is not in the list of due messages'],
  },
  {
    name: 'a due time of a delivered message',
    damage: ({ due }) => {
      due.putSync(dueKey(12, 7, 1), '1');
    },
    says: ['due: message 1 of queue 12 refers to no message that is due at that time'],
  },
  {
    name: 'a delivered message among those given up',
    damage: ({ exhausted }) => {
      exhausted.putSync(eventKey(12, 1), '1');
    },
    says: ['exhausted: message 1 of queue 12 refers to no message that was given up'],
  },
  {
    name: 'a replay that is not in the log',
    damage: ({ job }) => {
      job.putSync(3, '{}');
    },
    says: ['job: change 3 is not a replay'],
  },
];

suite('verifying the data', () => {
  test('finds nothing if all data agrees with the log', async (t) => {
    const store = await scratchStore(t);
    await writeSample(store);
    assert.deepEqual(await verified(store), []);
  });

  for (const { name, damage, says } of damages) {
    test(`finds ${name}`, async (t) => {
      const found = await afterDamage(t, damage);
      assert.deepEqual(
        found.map((line) => line.replaceAll(uuid, '…')),
        says,
      );
    });
  }

  test('keeps its copy in a folder with enough room, and leaves nothing there', async (t) => {
    const store = await scratchStore(t);
    await writeSample(store);
    const folder = await temporaryFolder(t);
    for await (const { differences } of store.part(upkeep).verify(folder))
      assert.deepEqual(differences, []);
    assert.deepEqual(await readdir(folder), []);
    const environment = openEnvironment(await temporaryFolder(t));
    t.after(() => environment.close());
    const databases = environment.transactionSync(() => openDatabases(environment));
    await assert.rejects(verifyData(databases, families, { folder, bytes: 1e18 }).next(), {
      code: 'storage_full',
      message:
        /^The check folds .* needs up to 1,000,000,000,000 MB, but the disk of \S+ has [\d,]+ MB free\. Make room/,
    });
    const missing = join(folder, 'missing');
    await assert.rejects(verifyData(databases, families, { folder: missing, bytes: 1 }).next(), {
      code: 'unavailable',
      message: `${missing} cannot hold the temporary copy of the check (ENOENT)`,
    });
  });

  test('finds nothing while another process writes', async (t) => {
    const folder = await temporaryFolder(t);
    const store = await scratchStore(t, { folder });
    await writeSample(store);
    const { lines, child } = startWriter(t, [folder, '1000000']);
    let written = 0;
    for await (const line of lines) {
      written += line === 'ready' ? 0 : 1;
      if (written === 500) break;
    }
    for await (const { differences } of store.part(upkeep).verify())
      assert.deepEqual(differences, []);
    assert.ok(store.seq() > 1_000);
    child.kill('SIGKILL');
  });
});

const step = fc.record({
  id: fc.constantFrom('a', 'b'),
  path: fc.constantFrom('/', '/a', '/a*', '/a/*'),
  rows: fc.option(fc.subarray([1, 2, 3, 4, 5, 6, 7, 8]), { nil: undefined }),
});

test('verifying finds nothing after random inserts, invalidates and restores', async (t) => {
  const property = fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
    const store = await scratchStore(t);
    for (const { id, path, rows } of steps) {
      const own = store.rows('userinterface', id).map(({ seq }) => seq);
      if (own.length === 0) await commit(store, inserted(id, { path }));
      else if (rows !== undefined) {
        const named = own.filter((_, index) => rows.includes(index + 1));
        await commit(store, takenBack(id, ...named));
      } else if (store.of(storedRules).rule(id) !== undefined)
        await commit(store, edited(id, { path }));
    }
    if (store.seq() > 0) assert.deepEqual(await verified(store), []);
    await store.close();
  });
  await fc.assert(property, { numRuns: 30 });
});
