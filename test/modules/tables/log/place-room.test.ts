import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { uuidv7 } from 'uuidv7';
import {
  rulesAtPlaceMax,
  wildcardRulesOverPathMax,
  wildcardsOverPathMax,
} from '../../../../src/modules/rules/log/rule-index.ts';
import { importRecords } from '../../../../src/modules/transfer/import.ts';
import { commit, edited, inserted, scratchStore } from '../../../core/log/scratch.ts';
import { storedRules } from '../../../../src/modules/rules/log/family.ts';

const isFull = {
  code: 'too_large',
  field: 'path',
  message: /^This origin and path already have 1000 /,
};
const many = (count: number) => Array.from({ length: count }, (_, at) => at);

suite('rules at one place', () => {
  for (const path of ['/p', '/p*', 'key']) {
    test(`are at most ${rulesAtPlaceMax} at ${path}`, async (t) => {
      const store = await scratchStore(t);
      const put = (id: string, to: string) => commit(store, inserted(id, { path: to }));
      await commit(
        store,
        ...many(rulesAtPlaceMax - 1).map((at) => inserted(`r${at}`, { path })),
        inserted('other', { path: '/other' }),
      );
      await put('last', path);
      await assert.rejects(put('more', path), isFull);
      await assert.rejects(commit(store, edited('other', { path })), isFull);
      await commit(store, edited('last', { rve: 1 }));
      // The same transaction removes one.
      await commit(store, edited('last', { path: '/left' }), edited('other', { path }));
      await assert.rejects(put('more', path), isFull);
      await put('elsewhere', '/p/other');
    });
  }

  test('of one transaction count too', async (t) => {
    const store = await scratchStore(t);
    const drafts = many(rulesAtPlaceMax + 1).map((at) => inserted(`r${at}`, { path: '/p' }));
    await assert.rejects(commit(store, ...drafts), isFull);
    assert.equal(store.seq(), 0);
  });

  test('are limited in an import too, which names the refused lines', async (t) => {
    const store = await scratchStore(t);
    const lines = many(rulesAtPlaceMax + 2).map((at) => `{"path":"/p","content":"${at}"}`);
    const parts = { store, newSecret: () => '', newId: uuidv7, engines: new Set<string>() };
    await assert.rejects(importRecords(parts, Buffer.from(lines.join('\n'))), {
      message: /^line 1001: This origin and path .*\nline 1002: This origin and path /,
    });
    await importRecords(parts, Buffer.from(lines.slice(0, rulesAtPlaceMax).join('\n')));
    assert.equal(store.of(storedRules).exactRules('*', '/p').length, rulesAtPlaceMax);
  });
});

suite('nested wildcards', () => {
  const nested = (at: number) => `/${'a'.repeat(at)}*`;

  test(`are at most ${wildcardsOverPathMax} over one path`, async (t) => {
    const store = await scratchStore(t);
    for (const at of many(wildcardsOverPathMax)) {
      await commit(store, inserted(`w${at}`, { path: nested(at) }));
    }
    const put = (path: string) => commit(store, inserted(uuidv7(), { path }));
    await assert.rejects(put(nested(wildcardsOverPathMax)), {
      code: 'too_large',
      message: /^64 wildcards with 64 page rules cover this path already/,
    });
    await put(nested(1));
    await put('/b*');
  });

  test('over the limit are matched from the longest one', async (t) => {
    const store = await scratchStore(t);
    // The wildcards that cover others come last.
    for (const at of many(wildcardsOverPathMax + 2).toReversed()) {
      await commit(store, inserted(`w${at}`, { path: nested(at) }));
    }
    const path = `/${'a'.repeat(200)}`;
    const found = [...store.of(storedRules).wildcardRules('*', path)].flat().map(({ id }) => id);
    assert.equal(found.length, wildcardsOverPathMax);
    assert.deepEqual([found[0], found.at(-1)], ['w65', 'w2']);
    const past = [...store.of(storedRules).at(store.seq()).wildcardRules('*', path)]
      .flat()
      .map(({ id }) => id);
    assert.deepEqual(past, found);
  });

  test(`have at most ${wildcardRulesOverPathMax} rules together`, async (t) => {
    const store = await scratchStore(t);
    const half = many(wildcardRulesOverPathMax / 2);
    await commit(store, ...half.map((at) => inserted(`x${at}`, { path: nested(1) })));
    await commit(store, ...half.map((at) => inserted(`y${at}`, { path: nested(2) })));
    await assert.rejects(commit(store, inserted('z', { path: nested(3) })), {
      message: /^2 wildcards with 1000 page rules cover this path already/,
    });
    await commit(store, inserted('short', { path: nested(0) }));
    const found = [...store.of(storedRules).wildcardRules('*', '/aaaa')].map(
      (group) => group.length,
    );
    assert.deepEqual(found, [500, 500]);
  });
});
