import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { mergeFields } from '../../../../src/core/log/change.ts';
import { Failure } from '../../../../src/core/values/failure.ts';
import { isJsonObject, type Json, type JsonObject } from '../../../../src/core/values/json/json.ts';
import type { Rule } from '../../../../src/modules/rules/rule.ts';
import { sentNames } from '../../../../src/core/operations/records/placement.ts';
import { placeRuleFields } from '../../../../src/modules/rules/operations/placement.ts';
import { startSite } from '../../../harness.ts';

const engines = new Set(['html', 'template']);
const nothing: JsonObject = {};

/** Writes fields; the record has no id, and `unknowns` is that of the answer. */
function write(before: JsonObject, sent: JsonObject, more: { engines?: Set<string> } = {}) {
  const current =
    before === nothing ? undefined : ({ ...before, id: 'r' } as unknown as Readonly<Rule>);
  const data = placeRuleFields({ current, sent }, { engines, ...more });
  const after = mergeFields(before, data);
  const waiting = isJsonObject(after._unknowns_) ? after._unknowns_ : {};
  const unknowns = sentNames(sent).filter((name) => Object.hasOwn(waiting, name));
  return { after, data, unknowns };
}

function code(act: () => unknown): string {
  try {
    act();
    return 'done';
  } catch (thrown) {
    assert.ok(thrown instanceof Failure, String(thrown));
    return `${thrown.code} ${thrown.field ?? ''}`;
  }
}

const page = { path: '/a', kind: 'content', content: 'x' };

suite('an insert', () => {
  const cases: readonly (readonly [title: string, sent: JsonObject, after: JsonObject])[] = [
    ['gets every origin where it names none', page, { ...page, origin: '*' }],
    [
      'is a content rule where it has content and no usable kind',
      { path: '/a', content: 'x', kind: 'blog' },
      { ...page, origin: '*', _unknowns_: { kind: 'blog' } },
    ],
    [
      'is a content rule where it has content and null for its kind',
      { path: '/a', content: 'x', kind: null },
      { ...page, origin: '*' },
    ],
    [
      'is a content rule where it names no kind at all',
      { path: '/a', engine: 'html', enginedata: { html: 'x' } },
      {
        ...{ path: '/a', kind: 'content', origin: '*' },
        ...{ engine: 'html', enginedata: { html: 'x' } },
      },
    ],
    [
      'keeps what is not valid under its name, as it was sent',
      { ...page, httpresponse: 'soon', lang: 5, colour: { of: ['money'] }, rve: '1.5' },
      {
        ...{ ...page, origin: '*' },
        _unknowns_: { httpresponse: 'soon', lang: 5, colour: { of: ['money'] }, rve: '1.5' },
      },
    ],
    [
      'keeps fields of another kind, and those that are the server’s',
      { path: 'k', kind: 'resolve', content: 'x', table: 't', id: 'mine', meta: {}, seq: 1 },
      {
        ...{ path: 'k', kind: 'resolve', origin: '*' },
        _unknowns_: { content: 'x', table: 't', id: 'mine', meta: {}, seq: 1 },
      },
    ],
    ['takes null for nothing', { ...page, lang: null, colour: null }, { ...page, origin: '*' }],
    [
      'opens what is sent as _unknowns_, however deep, its own fields first',
      { ...page, _unknowns_: { lang: 'de', rve: 1, _unknowns_: { a: 1, rve: 2 } }, rve: 3 },
      { ...page, origin: '*', lang: 'de', rve: 3, _unknowns_: { a: 1 } },
    ],
    [
      'keeps an _unknowns_ that is no object',
      { ...page, _unknowns_: 'all of them' },
      { ...page, origin: '*', _unknowns_: { _unknowns_: 'all of them' } },
    ],
  ];
  for (const [title, sent, after] of cases) {
    test(title, () => {
      assert.deepEqual(write(nothing, sent).after, after);
    });
  }

  const refusals: readonly (readonly [title: string, sent: JsonObject, refusal: string])[] = [
    ['no path', { kind: 'content', content: 'x' }, 'invalid path'],
    ['a path that is none', { ...page, path: 'a' }, 'invalid path'],
    ['a path that is no text', { ...page, path: ['/a'] }, 'invalid path'],
    ['a kind that is none, and no content', { path: '/a', kind: 'blog' }, 'invalid kind'],
    ['the key of a breadcrumb without its kind', { path: 'spring' }, 'invalid path'],
    ['257 unknown fields', { ...page, ...numbered(257) }, 'too_large u256'],
    ['more than 4 MiB beside its content', { ...page, a: 'x'.repeat(4 << 20) }, 'too_large '],
    ['too long a path', { ...page, path: `/${'a'.repeat(4_096)}` }, 'too_large path'],
  ];
  for (const [title, sent, refusal] of refusals) {
    test(`is refused: ${title}`, () => {
      assert.equal(
        code(() => write(nothing, sent)),
        refusal,
      );
    });
  }

  test('may have 256 unknown fields, and long content', () => {
    const { unknowns } = write(nothing, { ...page, ...numbered(256) });
    assert.equal(unknowns.length, 256);
    assert.equal(
      code(() => write(nothing, { ...page, content: 'x'.repeat(5 << 20) })),
      'done',
    );
  });
});

function numbered(count: number): JsonObject {
  return Object.fromEntries(Array.from({ length: count }, (_, at) => [`u${at}`, at]));
}

suite('an edit', () => {
  const cases: readonly (readonly [
    title: string,
    before: JsonObject,
    sent: JsonObject,
    data: JsonObject,
  ])[] = [
    ['that repeats what is there changes nothing', page, { ...page, origin: '*' }, { origin: '*' }],
    ['removes with null', { ...page, lang: 'de' }, { lang: null }, { lang: null, origin: '*' }],
    [
      'removes with null what waits',
      { ...page, origin: '*', _unknowns_: { a: 1, b: 2 } },
      { a: null, _unknowns_: { b: null } },
      { _unknowns_: { a: null, b: null } },
    ],
    [
      'removes with null all that waits',
      { ...page, origin: '*', _unknowns_: { a: 1, b: 2 } },
      { _unknowns_: null, c: 3 },
      { _unknowns_: { a: null, b: null, c: 3 } },
    ],
    [
      'ends the waiting of a value when the one in its place is confirmed',
      {
        ...page,
        origin: '*',
        httpresponse: 201,
        _unknowns_: { httpresponse: 'soon', kind: 'blog' },
      },
      { httpresponse: 201, kind: 'content' },
      { _unknowns_: { httpresponse: null, kind: null } },
    ],
    [
      'that sends both back as they were read changes nothing',
      { ...page, origin: '*', httpresponse: 201, _unknowns_: { httpresponse: 'soon' } },
      { httpresponse: 201, _unknowns_: { httpresponse: 'soon' } },
      {},
    ],
    [
      'keeps the old value beside a new one that is not valid',
      { ...page, origin: '*', httpresponse: 201 },
      { httpresponse: 'soon' },
      { _unknowns_: { httpresponse: 'soon' } },
    ],
    [
      'moves up what has become valid by another kind',
      { path: '/a', kind: 'resolve', origin: '*', _unknowns_: { content: 'x', table: 5 } },
      { kind: 'content' },
      { kind: 'content', content: 'x', _unknowns_: { content: null } },
    ],
    [
      'moves down what another kind has no place for',
      { ...page, origin: '*', contenttype: 'text/plain', engine: 'html' },
      { kind: 'resolve' },
      {
        kind: 'resolve',
        content: null,
        engine: null,
        _unknowns_: { content: 'x', engine: 'html' },
      },
    ],
    [
      'keeps the kind it has where a new one is none',
      { ...page, origin: '*' },
      { kind: 'blog' },
      { _unknowns_: { kind: 'blog' } },
    ],
    [
      'holds enginedata against the engine there is, not against one that waits',
      { ...page, origin: '*', engine: 'html', _unknowns_: { engine: 'none' } },
      { enginedata: { html: 5 } },
      { _unknowns_: { enginedata: { html: 5 } } },
    ],
    [
      'falls back to every origin',
      { ...page, origin: 'http://a.example' },
      { origin: null },
      { origin: '*' },
    ],
    [
      'does not take a canonical path for an encoded one',
      { path: '/a%41', kind: 'content', origin: '*' },
      { rve: 1 },
      { rve: 1 },
    ],
  ];
  for (const [title, before, sent, data] of cases) {
    test(title, () => {
      assert.deepEqual(write(before, sent).data, data);
    });
  }

  test('uses a waiting engine that exists by now', () => {
    const before = { ...page, origin: '*', _unknowns_: { engine: 'mine' } };
    const { after } = write(before, { lang: 'de' }, { engines: new Set(['mine']) });
    assert.deepEqual(after, { ...page, origin: '*', engine: 'mine', lang: 'de' });
  });

  test('is refused if the rule would lose its path or its kind', () => {
    const crumb = { path: 'spring', kind: 'resolve', origin: '*' };
    const edit = (before: JsonObject, sent: JsonObject) => code(() => write(before, sent));
    assert.equal(edit(crumb, { kind: 'content' }), 'invalid path');
    assert.equal(edit({ ...page, origin: '*' }, { path: null }), 'invalid path');
    assert.equal(edit(crumb, { kind: null }), 'invalid path', 'without kind it is content');
  });
});

suite('a field with any name', () => {
  const names = [
    ...['__proto__', 'constructor', 'prototype', 'toString', 'valueOf', 'hasOwnProperty'],
    ...['__defineGetter__', '__lookupSetter__', 'toJSON', 'length', 'then', '', '0'],
  ];
  for (const name of names) {
    test(`${JSON.stringify(name)} is stored, changed, sent back and removed as any other`, () => {
      const field = (value: Json) => Object.fromEntries([[name, value]]);
      const inserted = write(nothing, { ...page, ...field({ polluted: 1 }) });
      assert.deepEqual(inserted.unknowns, [name]);
      assert.equal(
        JSON.stringify(inserted.after._unknowns_),
        JSON.stringify(field({ polluted: 1 })),
      );
      assert.deepEqual(write(inserted.after, inserted.after).data, {});
      const edited = write(inserted.after, { _unknowns_: field({}) });
      assert.equal(JSON.stringify(edited.after._unknowns_), JSON.stringify(field({})));
      const removed = write(edited.after, field(null));
      assert.equal(removed.after._unknowns_, undefined);
      assert.deepEqual(removed.unknowns, []);
      assert.deepEqual(write(nothing, { ...page, ...field(null) }).unknowns, []);
      assert.equal(({} as { polluted?: unknown }).polluted, undefined);
    });
  }

  test('goes through the store and back', async (t) => {
    const site = await startSite(t);
    const v = Object.fromEntries([
      ...Object.entries(page),
      ...names.map((name) => [name, { a: 1 }]),
    ]);
    const { data } = await site.call('svc1.userinterface.insert', v);
    const unknowns = Object.fromEntries(names.map((name) => [name, { a: 1 }]));
    const read = await site.call('svc1.userinterface.read', { id: data.id });
    assert.deepEqual(
      Object.entries(read.data._unknowns_ as object).sort(),
      Object.entries(unknowns).sort(),
    );
    const nulls = Object.fromEntries(names.map((name) => [name, null]));
    const edited = await site.call('svc1.userinterface.edit', { ...nulls, id: data.id });
    assert.equal(edited.data._unknowns_, undefined);
  });
});
