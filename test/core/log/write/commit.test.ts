import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { Decision } from '../../../../src/core/log/store.ts';
import { commitQueueMax } from '../../../../src/core/log/write/commit.ts';
import { Failure } from '../../../../src/core/values/failure.ts';
import type { JsonObject } from '../../../../src/core/values/json/json.ts';
import { commit, edited, inserted, scratchStore } from '../scratch.ts';
import { storedRules } from '../../../../src/modules/rules/log/family.ts';

suite('a commit', () => {
  test('is one transaction: its rows are in order and share txn and times', async (t) => {
    let ms = Date.UTC(2026, 0, 1);
    const store = await scratchStore(t, { now: () => (ms += 5) });
    const changes = await commit(
      store,
      inserted('a', { path: '/a' }),
      edited('a', { path: '/b' }),
      inserted('b', { path: '/c' }),
    );
    const [first] = changes;
    assert.deepEqual(
      changes.map(({ seq, txn, by, dtu_txn, dtu_stored }) => [seq, txn, by, dtu_txn, dtu_stored]),
      [1, 2, 3].map((seq) => [
        seq,
        first?.txn,
        'test',
        '2026-01-01T00:00:00.005Z',
        '2026-01-01T00:00:00.010Z',
      ]),
    );
    const [next] = await commit(store, edited('a', { lang: 'en' }));
    assert.equal(next?.seq, 4);
    assert.notEqual(next.txn, first?.txn);
  });

  test('is visible at once in rules, matching and history', async (t) => {
    const store = await scratchStore(t);
    const [change] = await commit(store, inserted('a', { path: '/a' }));
    assert.equal(store.of(storedRules).rule('a')?.rule.path, '/a');
    assert.equal(store.of(storedRules).exactRules('*', '/a').length, 1);
    const { family: _family, id: _id, ...row } = change ?? assert.fail();
    assert.deepEqual(store.history('userinterface', 'a', { before: undefined, limit: 9 }), [
      { ...row, invalidated: undefined },
    ]);
  });

  test('stores an inserted page rule as it was given', async (t) => {
    const odd = JSON.parse('{"7":1,"__proto__":{"a":[null]},"constructor":2}') as JsonObject;
    const rules: readonly JsonObject[] = [
      { kind: 'content', content: 'ä\ud800 "\n', path: '/käse', origin: 'https://a.example' },
      { path: `/${'long'.repeat(600)}`, designed_at: 'never' },
      { path: '/\ud800', lang: 'x'.repeat(500), _unknowns_: odd },
    ];
    const store = await scratchStore(t);
    const drafts = rules.map((data, at) => inserted(`r${at}`, data));
    await commit(store, ...drafts);
    for (const [at, { id, data }] of drafts.entries()) {
      const state = { rule: { id, ...data }, seq: at + 1, insertedSeq: at + 1 };
      assert.equal(JSON.stringify(store.of(storedRules).rule(id)), JSON.stringify(state));
      assert.deepEqual(store.change(at + 1)?.data, data);
    }
  });

  test('without drafts returns its answer and uses no seq', async (t) => {
    const store = await scratchStore(t);
    assert.deepEqual(await commit(store), []);
    assert.equal(store.seq(), 0);
  });

  test('stores its vk with its record and seq', async (t) => {
    const store = await scratchStore(t);
    const hash = 'ab'.repeat(32);
    const derived = `fields:${hash}`;
    const impostor = `\xff${Buffer.from(hash, 'hex').toString('latin1')}`;
    const claims = [
      ...['v', '\ud800', '\0', 'v'.repeat(5_000), '', impostor, `${derived}0`],
      `fields:${'cd'.repeat(32)}`,
    ].map((vk, at) => ({ vk, requestHash: `hash ${at}` }));
    claims.push({ vk: derived, requestHash: hash });
    await commit(store, ...claims.map((vk, at) => ({ ...inserted(`r${at}`, { path: '/' }), vk })));
    for (const [at, claim] of claims.entries()) {
      assert.deepEqual(store.vkClaim(claim.vk), {
        ...claim,
        by: 'test',
        id: `r${at}`,
        seq: at + 1,
      });
    }
    assert.equal(store.vkClaim('other'), undefined);
  });

  test('sees the earlier commits of the same batch', async (t) => {
    const store = await scratchStore(t);
    const counts = await Promise.all(
      [0, 1, 2, 3].map((n) =>
        store.commit('test', (reads) => {
          const before = reads.of(storedRules).exactRules('*', '/same').length;
          assert.equal(reads.seq(), before);
          return { drafts: [inserted(`r${n}`, { path: '/same' })], answer: () => before };
        }),
      ),
    );
    assert.deepEqual(counts, [0, 1, 2, 3]);
  });
});

suite('a commit that fails', () => {
  const failures: readonly (readonly [string, () => Decision<unknown>, RegExp])[] = [
    [
      'in decide',
      () => {
        throw new Failure('not_found', 'no such rule');
      },
      /no such rule/,
    ],
    [
      'in its answer',
      () => ({
        drafts: [inserted('bad', { path: '/bad' })],
        answer: () => assert.fail('no answer'),
      }),
      /no answer/,
    ],
    [
      'because its second draft edits a missing record',
      () => ({
        drafts: [inserted('bad', { path: '/bad' }), edited('missing', { lang: 'en' })],
        answer: () => undefined,
      }),
      /missing cannot be edited/,
    ],
    [
      'because its insert exists already',
      () => ({ drafts: [inserted('good0', { path: '/bad' })], answer: () => undefined }),
      /good0 is inserted already/,
    ],
    [
      'because a path is longer than a key of LMDB',
      () => ({
        drafts: [
          inserted('bad', { path: '/bad' }),
          inserted('worse', { path: `/${'x'.repeat(2_000)}*` }),
        ],
        answer: () => undefined,
      }),
      /path is too long/,
    ],
    [
      'because a wildcard is not Unicode text',
      () => ({ drafts: [inserted('bad', { path: '/\ud800*' })], answer: () => undefined }),
      /path has to be Unicode text/,
    ],
    [
      'because a language is too long',
      () => ({
        drafts: [inserted('bad', { path: '/bad', lang: 'x'.repeat(2_000) })],
        answer: () => undefined,
      }),
      /lang is too long/,
    ],
  ];

  for (const [name, decide, message] of failures) {
    test(`${name} writes nothing; other commits of the batch succeed`, async (t) => {
      const store = await scratchStore(t);
      const [before, failed, after] = await Promise.allSettled([
        commit(store, inserted('good0', { path: '/good' })),
        store.commit('test', decide),
        commit(store, inserted('good1', { path: '/good' })),
      ]);
      assert.equal(before.status, 'fulfilled');
      assert.ok(failed.status === 'rejected' && message.test(String(failed.reason)), name);
      assert.ok(after.status === 'fulfilled' && after.value[0]?.seq === 2);
      assert.equal(store.of(storedRules).exactRules('*', '/good').length, 2);
      assert.deepEqual(
        [store.of(storedRules).exactRules('*', '/bad'), store.of(storedRules).rule('bad')],
        [[], undefined],
      );
      assert.equal(store.seq(), 2);
    });
  }
});

suite('many commits at once', () => {
  test('get seqs without gaps, and answers in order', async (t) => {
    const store = await scratchStore(t);
    const answered: number[] = [];
    await Promise.all(
      Array.from({ length: 2_000 }, async (_, n) => {
        const [change] = await commit(store, inserted(`r${n}`, { path: `/${n}` }));
        answered.push(change?.seq ?? 0);
      }),
    );
    assert.deepEqual(
      answered,
      Array.from({ length: 2_000 }, (_, n) => n + 1),
    );
    assert.equal(store.counts().rules, 2_000);
  });

  test('over the limit are refused with retryAfterSeconds, and the others are stored', async (t) => {
    const store = await scratchStore(t);
    const nothing = () => ({ drafts: [], answer: () => 'done' });
    const waiting = Array.from({ length: commitQueueMax }, () => store.commit('test', nothing));
    await assert.rejects(store.commit('test', nothing), {
      code: 'unavailable',
      retryAfterSeconds: 1,
    });
    assert.ok((await Promise.all(waiting)).every((answer) => answer === 'done'));
    assert.equal(await store.commit('test', nothing), 'done');
  });

  test('complete before the store closes; later ones are refused', async (t) => {
    const store = await scratchStore(t);
    const pending = [1, 2, 3].map((n) => commit(store, inserted(`r${n}`, { path: '/' })));
    const closing = store.close();
    await assert.rejects(commit(store, inserted('late', { path: '/' })), { code: 'unavailable' });
    assert.equal((await Promise.all(pending)).length, 3);
    await closing;
    await store.close();
    await assert.rejects(commit(store), { code: 'unavailable' });
  });
});
