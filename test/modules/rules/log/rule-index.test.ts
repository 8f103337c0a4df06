import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { JsonObject } from '../../../../src/core/values/json/json.ts';
import type { LoggedDraft } from '../../../../src/core/log/store.ts';
import { commit, edited, inserted, scratchStore } from '../../../core/log/scratch.ts';
import { upkeep } from '../../../../src/modules/upkeep/upkeep.ts';
import { storedRules } from '../../../../src/modules/rules/log/family.ts';

const ids = (candidates: readonly { readonly id: string }[]) => candidates.map(({ id }) => id);

suite('wildcard rules', () => {
  const long = `/${'l'.repeat(1_000)}`;
  const cases: readonly (readonly [string, string, boolean])[] = [
    ['/a*', '/a', true],
    ['/a*', '/ab', true],
    ['/a*', '/a/b', true],
    ['/a*', '/', false],
    ['/a*', '/b', false],
    ['/a/*', '/a', false],
    ['/a/*', '/a/', true],
    ['/a/*', '/a/b/c', true],
    ['/a/*', '/ab', false],
    ['/*', '/', true],
    ['/*', '/anything', true],
    ['/é*', '/é', true],
    ['/é*', '/éa', true],
    ['/é*', '/è', false],
    ['/\u{1f600}*', '/\u{1f600}/x', true],
    ['/\u{1f600}*', '/\u{1f601}', false],
    ['/\ufffd*', '/\ud800', false],
    ['/\ufffd*', '/\ufffdx', true],
    ['/a\0*', '/a\0b', true],
    ['/a\0*', '/a', false],
    [`${long}*`, `${long}${'m'.repeat(3_000)}`, true],
    [`${long}*`, long, true],
    [`${long}*`, long.slice(0, -1), false],
    ['/a/*/c', '/a/b/c', true],
    ['/a/*/c', '/a/*/c', true],
    ['/a/*/c', '/a/!/c', true],
    ['/a/*/c', '/a//c', false],
    ['/a/*/c', '/a/c', false],
    ['/a/*/c', '/a/b/b/c', false],
    ['/a/*/c', '/a/b/c/', false],
    ['/*/c', '/a/c', true],
    ['/*/c', '//c', false],
    ['/a/*/', '/a/b/', true],
    ['/a/*/', '/a/b', false],
    ['/\u{1f600}/*/é', '/\u{1f600}/è/é', true],
    ['/\ufffd/*/a', '/\ud800/b/a', false],
    ['/a/*/c', `/a/${'b'.repeat(3_000)}/c`, true],
    [`/*${long}`, `/a${long}`, true],
    [`/*${'/a'.repeat(31)}`, `/b${'/a'.repeat(31)}`, true],
    ['/*/a', '/a'.repeat(4_000), false],
  ];

  for (const [rule, path, covers] of cases) {
    const shown = `${JSON.stringify(rule.slice(0, 12))} and ${JSON.stringify(path.slice(0, 12))}`;
    test(`${shown} of ${path.length} ${covers ? 'meet' : 'do not meet'}`, async (t) => {
      const store = await scratchStore(t);
      await commit(store, inserted('near', { path: '/a0' }), inserted('rule', { path: rule }));
      assert.deepEqual(
        ids([...store.of(storedRules).wildcardRules('*', path)].flat()),
        covers ? ['rule'] : [],
      );
      assert.deepEqual(store.of(storedRules).exactRules('*', rule), []);
    });
  }

  test('come longest first, and only of the requested origin', async (t) => {
    const store = await scratchStore(t);
    const origin = 'https://a.example';
    const at = (id: string, path: string, more: JsonObject = {}) =>
      inserted(id, { origin, path, kind: 'content.fetch', ...more });
    await commit(
      store,
      ...['/*', '/shop/*', '/shop/c*', '/shop/chairs/*', '/shop/chairs/red*', '/shop/d*'].map(
        (path) => at(path, path),
      ),
      at('other', '/shop/*', { origin: 'https://a.example.org' }),
      at('everywhere', '/shop/*', { origin: '*' }),
      at('exact', '/shop/chairs/blue'),
    );
    assert.deepEqual(
      ids([...store.of(storedRules).wildcardRules(origin, '/shop/chairs/blue')].flat()),
      ['/shop/chairs/*', '/shop/c*', '/shop/*', '/*'],
    );
    assert.deepEqual(
      ids([...store.of(storedRules).wildcardRules('*', '/shop/chairs/blue')].flat()),
      ['everywhere'],
    );
    assert.deepEqual(
      [...store.of(storedRules).wildcardRules('https://b.example', '/shop/')].flat(),
      [],
    );
    assert.deepEqual(
      [...store.of(storedRules).wildcardRules('https://a.exampl', '/shop/')].flat(),
      [],
    );
  });

  test('do not match the key of a breadcrumb, which is never a wildcard', async (t) => {
    const store = await scratchStore(t);
    const keys = ['spring*', '*', 'a/*', 'x', 'é'.repeat(512), ' /a*', '\0', '\ud800*'];
    await commit(
      store,
      ...keys.map((path, at) => inserted(`key ${at}`, { path, kind: 'resolve' })),
      inserted('visit', { path: '/go*', kind: 'resolve' }),
    );
    for (const [at, key] of keys.entries()) {
      assert.deepEqual(ids(store.of(storedRules).exactRules('*', key)), [`key ${at}`], key);
      assert.deepEqual([...store.of(storedRules).wildcardRules('*', key)].flat(), [], key);
    }
    assert.deepEqual([...store.of(storedRules).wildcardRules('*', 'springtime')].flat(), []);
    assert.deepEqual(ids([...store.of(storedRules).wildcardRules('*', '/gone')].flat()), ['visit']);
  });
});

suite('rules of the same place', () => {
  for (const path of ['/p', '/p*', '/*/p']) {
    const covered = path === '/*/p' ? '/q/p' : '/pq';
    test(`are all found at ${path} after inserts and invalidates`, async (t) => {
      const store = await scratchStore(t);
      const found = () => {
        const rules =
          path === '/p'
            ? store.of(storedRules).exactRules('*', path)
            : store.of(storedRules).wildcardRules('*', covered);
        return ids([...rules].flat()).toSorted();
      };
      const steps: readonly (readonly [() => LoggedDraft, readonly string[]])[] = [
        [() => inserted('a', { path }), ['a']],
        [() => edited('a', { rve: 1 }), ['a']],
        [() => inserted('b', { path }), ['a', 'b']],
        [() => edited('b', { rve: 2 }), ['a', 'b']],
        [() => inserted('c', { path }), ['a', 'b', 'c']],
        [() => edited('b', { path: '/elsewhere' }), ['a', 'c']],
        [() => edited('a', { path: '/elsewhere' }), ['c']],
        [() => edited('c', { rve: 3 }), ['c']],
        [() => edited('b', { path }), ['b', 'c']],
        [() => edited('c', { path: '/elsewhere' }), ['b']],
        [() => edited('b', { path: '/elsewhere' }), []],
        [() => edited('a', { path }), ['a']],
      ];
      for (const [at, [draft, expected]] of steps.entries()) {
        await commit(store, draft());
        assert.deepEqual(found(), expected, `step ${at}`);
      }
      for await (const { differences } of store.part(upkeep).verify())
        assert.deepEqual(differences, []);
    });

    test(`are all found at ${path} after inserts and invalidates in one transaction`, async (t) => {
      const store = await scratchStore(t);
      const all = ['a', 'b', 'c'].map((id) => inserted(id, { path }));
      await commit(store, ...all, edited('b', { rve: 1 }), edited('a', { path: '/elsewhere' }));
      const rules =
        path === '/p'
          ? store.of(storedRules).exactRules('*', path)
          : store.of(storedRules).wildcardRules('*', covered);
      assert.deepEqual(ids([...rules].flat()).toSorted(), ['b', 'c']);
      for await (const { differences } of store.part(upkeep).verify())
        assert.deepEqual(differences, []);
    });
  }
});

suite('rules of several origins', () => {
  for (const path of ['/p', '/p*', '/*/p', 'p']) {
    test(`are at each of them with ${path}, and nowhere else after an edit`, async (t) => {
      const store = await scratchStore(t);
      const covered = path.replace('*', 'x');
      const at = (origin: string) => [
        ...store.of(storedRules).exactRules(origin, covered),
        ...[...store.of(storedRules).wildcardRules(origin, covered)].flat(),
      ];
      const found = () =>
        ['http://a', 'http://b', 'http://c'].map((origin) =>
          at(origin).map((one) => `${one.id} ${one.origin}`),
        );
      const kind = 'resolve';
      await commit(store, inserted('one', { origin: 'http://a http://b', path, kind }));
      await commit(store, inserted('two', { origin: 'http://b http://c', path, kind }));
      const before = [['one http://a'], ['one http://b', 'two http://b'], ['two http://c']];
      assert.deepEqual(found(), before);
      await commit(store, edited('one', { origin: 'http://c http://a' }));
      const after = [['one http://a'], ['two http://b'], ['one http://c', 'two http://c']];
      assert.deepEqual(found(), after);
      const past = store.of(storedRules).at(2);
      const then = [
        ...past.exactRules('http://b', covered),
        ...[...past.wildcardRules('http://b', covered)].flat(),
      ];
      assert.deepEqual(then.map((one) => `${one.id} ${one.origin}`).toSorted(), before[1]);
      for await (const { differences } of store.part(upkeep).verify())
        assert.deepEqual(differences, []);
    });
  }
});

suite('exact rules', () => {
  test('are all rules of an origin and path, with the fields that matching needs', async (t) => {
    const store = await scratchStore(t);
    await commit(
      store,
      inserted('plain', { path: '/a' }),
      inserted('full', {
        path: '/a',
        kind: 'edit-record',
        lang: 'de-CH',
        rve: -0.5,
        designed_at: '2026-03-01T12:00:00.000Z',
      }),
      inserted('elsewhere', { path: '/a', origin: 'http://a.example' }),
    );
    const common = { origin: '*', path: '/a' };
    const nothing = { lang: undefined, rve: undefined, designedAtMs: undefined };
    assert.deepEqual(
      store
        .of(storedRules)
        .exactRules('*', '/a')
        .toSorted((one, other) => one.seq - other.seq),
      [
        { id: 'plain', seq: 1, insertedSeq: 1, kind: 'content', ...common, ...nothing },
        {
          id: 'full',
          seq: 2,
          insertedSeq: 2,
          kind: 'edit-record',
          ...common,
          lang: 'de-CH',
          rve: -0.5,
          designedAtMs: Date.UTC(2026, 2, 1, 12),
        },
      ],
    );
  });

  test('are found by paths of any length', async (t) => {
    const store = await scratchStore(t);
    const origin = `https://${'o'.repeat(500)}`;
    const path = `/${'p'.repeat(4_000)}`;
    await commit(store, inserted('long', { origin, path }));
    assert.deepEqual(ids(store.of(storedRules).exactRules(origin, path)), ['long']);
    assert.deepEqual(store.of(storedRules).exactRules(origin, `${path}p`), []);
    assert.equal(store.of(storedRules).exactRules(origin, path)[0]?.path, path);
  });

  test('may be a thousand at one path', async (t) => {
    const store = await scratchStore(t);
    const drafts = Array.from({ length: 1_000 }, (_, n) => inserted(`r${n}`, { path: '/same' }));
    await commit(store, ...drafts);
    assert.equal(store.of(storedRules).exactRules('*', '/same').length, 1_000);
    await commit(store, ...drafts.slice(0, 999).map(({ id }) => edited(id, { path: '/left' })));
    assert.deepEqual(ids(store.of(storedRules).exactRules('*', '/same')), ['r999']);
  });
});

suite('an edit', () => {
  const moves: readonly (readonly [JsonObject, string, string])[] = [
    [{ origin: 'http://a.example' }, 'http://a.example', '/a'],
    [{ path: '/b' }, '*', '/b'],
    [{ path: '/b*' }, '*', '/b*'],
    [{ path: '/b/*/c' }, '*', '/b/*/c'],
    [{ kind: 'resolve', path: 'key' }, '*', 'key'],
    [{ kind: 'insert-record' }, '*', '/a'],
    [{ lang: 'en' }, '*', '/a'],
    [{ lang: null }, '*', '/a'],
    [{ rve: 7 }, '*', '/a'],
    [{ designed_at: '2027-01-01T00:00:00.000Z' }, '*', '/a'],
    [{ designed_at: null }, '*', '/a'],
    [{ content: 'other' }, '*', '/a'],
  ];

  for (const [data, origin, path] of moves) {
    test(`of ${JSON.stringify(data)} is what matching sees, and nothing else`, async (t) => {
      const store = await scratchStore(t);
      const fields = { lang: 'fr', rve: 1, designed_at: '2026-01-01T00:00:00.000Z' };
      await commit(store, inserted('r', { path: '/a', ...fields }));
      await commit(store, edited('r', data));
      const found = path.includes('*')
        ? [...store.of(storedRules).wildcardRules(origin, path.replace('*', 'x'))].flat()
        : store.of(storedRules).exactRules(origin, path);
      const { rule } = store.of(storedRules).rule('r') ?? assert.fail();
      const designedAtMs =
        rule.designed_at === undefined ? undefined : Date.parse(rule.designed_at);
      const { kind, lang, rve } = rule;
      assert.deepEqual(found, [
        { id: 'r', seq: 2, insertedSeq: 1, origin, path, kind, lang, rve, designedAtMs },
      ]);
      if (origin !== '*' || path !== '/a')
        assert.deepEqual(store.of(storedRules).exactRules('*', '/a'), []);
    });
  }

  test('that removes a rule also removes it from matching', async (t) => {
    const store = await scratchStore(t);
    await commit(store, inserted('r', { path: '/a' }), inserted('w', { path: '/a*' }));
    await commit(
      store,
      { family: 'userinterface', id: 'r', action: 'invalidate', data: { rows: [1] } },
      { family: 'userinterface', id: 'w', action: 'invalidate', data: { rows: [2] } },
    );
    assert.deepEqual(
      [
        store.of(storedRules).exactRules('*', '/a'),
        [...store.of(storedRules).wildcardRules('*', '/a')].flat(),
      ],
      [[], []],
    );
    assert.equal(store.of(storedRules).rule('r'), undefined);
    assert.equal(store.of(storedRules).ruleAt('r', 1)?.rule.path, '/a');
  });
});
