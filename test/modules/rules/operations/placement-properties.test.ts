import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'node:test';
import { mergeFields } from '../../../../src/core/log/change.ts';
import { Failure } from '../../../../src/core/values/failure.ts';
import {
  isJsonObject,
  sameJson,
  type Json,
  type JsonObject,
} from '../../../../src/core/values/json/json.ts';
import { ruleKinds, type Rule } from '../../../../src/modules/rules/rule.ts';
import { sentNames } from '../../../../src/core/operations/records/placement.ts';
import { placeRuleFields } from '../../../../src/modules/rules/operations/placement.ts';

const engines = new Set(['html', 'template']);
const nothing: JsonObject = {};
const page = { path: '/a', kind: 'content', content: 'x' };

/** Writes fields; the record has no id, and `unknowns` is that of the answer. */
function write(before: JsonObject, sent: JsonObject) {
  const current =
    before === nothing ? undefined : ({ ...before, id: 'r' } as unknown as Readonly<Rule>);
  const data = placeRuleFields({ current, sent }, { engines });
  const after = mergeFields(before, data);
  const waiting = unknownsOf(after);
  const unknowns = sentNames(sent).filter((name) => Object.hasOwn(waiting, name));
  return { after, data, unknowns };
}

function unknownsOf({ _unknowns_: unknowns }: JsonObject): JsonObject {
  return isJsonObject(unknowns) ? unknowns : {};
}

/**
 * Field names with values that are valid for every kind they belong to, and ones that never are.
 */
const fields: Readonly<Record<string, { valid: readonly Json[]; not: readonly Json[] }>> = {
  kind: { valid: ruleKinds, not: ['blog', 1] },
  path: { valid: ['/a', '/b*', '/a%20b'], not: ['/a/../b', 5] },
  origin: { valid: ['*', 'HTTP://A.example'], not: ['a.example', {}] },
  content: { valid: ['x', { base64: 'AAEC' }], not: [5, { base64: '?' }, ['x']] },
  contenttype: { valid: ['text/plain'], not: ['plain', 1] },
  httpresponse: { valid: [201], not: ['404', 199, 600, 'soon', true] },
  engine: { valid: ['html', 'template'], not: ['none', 1] },
  enginedata: { valid: [{ source: 'http://a.example/' }], not: ['x', [], { source: 5, html: 5 }] },
  table: { valid: ['t'], not: ['', 5] },
  from: {
    valid: ['2026-01-02T03:04:05Z', '2026-07-01T02:00[Europe/Berlin]'],
    not: ['2026-01-02T03:04', 1],
  },
  designed_at: { valid: ['2026-01-02T03:04:05Z'], not: ['yesterday', 1] },
  lang: { valid: ['de', 'EN-gb'], not: ['!', 5] },
  rve: { valid: [1.5], not: ['2', 'x', true] },
  enginecomments: { valid: ['x'], not: [5] },
};
const pool = new Map(Object.entries(fields));

const pageKinds = ['content', 'edit-record', 'insert-record', 'delete-record'] as const;

/**
 * The kinds that have a field, if not all do
 * (docs/design/page-rules.md#invalid-values).
 */
const kindsOf: ReadonlyMap<string, readonly Json[]> = new Map<string, readonly Json[]>([
  ['content', ['content']],
  ['contenttype', ['content', 'resolve']],
  ['engine', pageKinds],
  ['table', pageKinds],
]);

function isFor(name: string, { kind }: JsonObject): boolean {
  return (kindsOf.get(name) ?? ruleKinds).includes(kind ?? null);
}

const knownFields = fc.constantFrom(...pool.keys()).chain((name) => {
  const { valid = [], not = [] } = pool.get(name) ?? {};
  return fc.tuple(fc.constant(name), fc.constantFrom<Json>(...valid, ...not, null));
});
const unknownFields = fc.tuple(
  fc.constantFrom('colour', '__proto__', 'constructor', 'toString', 'meta', '_x_', ''),
  fc.constantFrom<Json>(1, 'x', {}, { a: null }, [null], false, null),
);
const flat = fc
  .array(fc.oneof({ weight: 3, arbitrary: knownFields }, unknownFields), { maxLength: 6 })
  .map((entries): JsonObject => Object.fromEntries(entries));
const sentFields = fc
  .tuple(flat, fc.option(flat, { freq: 3, nil: undefined }))
  .map(([named, unknowns]) =>
    unknowns === undefined ? named : { ...named, _unknowns_: unknowns },
  );

/** All sent fields by name; a field outside `_unknowns_` takes precedence. */
function openedUp({ _unknowns_: nested, ...named }: JsonObject): ReadonlyMap<string, Json> {
  return new Map([...Object.entries(nested ?? {}), ...Object.entries(named)]);
}

function checkWrite(before: JsonObject, sent: JsonObject): JsonObject {
  let written;
  try {
    written = write(before, sent);
  } catch (thrown) {
    assert.ok(thrown instanceof Failure && ['path', 'kind'].includes(thrown.field ?? ''));
    return before;
  }
  const { after, unknowns } = written;
  const has = (record: JsonObject, name: string) => Object.hasOwn(record, name);
  const waiting = unknownsOf(after);
  const given = openedUp(sent);
  for (const name of Object.keys(after)) {
    if (name === '_unknowns_') continue;
    assert.ok(pool.has(name), `${name} is a field`);
    assert.ok(isFor(name, after), `${name} is of the kind`);
  }
  for (const [name, value] of given) {
    const isDefault = name === 'kind' || (name === 'origin' && after.origin === '*');
    if (value === null) assert.ok((!has(after, name) && !has(waiting, name)) || isDefault, name);
    else if (has(waiting, name)) {
      // A part of enginedata may wait.
      const isWhole = name !== 'enginedata' || !isJsonObject(value);
      assert.ok(!isWhole || sameJson(waiting[name], value) || has(before, name), name);
    } else assert.ok(has(after, name), `${name} is kept`);
  }
  for (const name of [...Object.keys(before), ...Object.keys(unknownsOf(before))]) {
    if (name === '_unknowns_' || given.get(name) === null) continue;
    assert.ok(has(after, name) || has(waiting, name), `${name} is not lost`);
  }
  for (const [name, value] of Object.entries(waiting)) {
    const valid = pool.get(name)?.valid.some((one) => sameJson(one, value)) ?? false;
    // Whether enginedata is valid depends on more than its own value.
    const isSettled = name === 'enginedata' || !valid || !isFor(name, after);
    assert.ok(isSettled, `${name} is where it belongs`);
  }
  assert.deepEqual(
    unknowns.filter((name) => !has(waiting, name) || !given.has(name)),
    [],
  );
  assert.deepEqual(write(after, after).data, {}, 'what was read, sent back, changes nothing');
  return after;
}

test('every sent value becomes a field or waits, and none is lost', () => {
  fc.assert(
    fc.property(fc.array(sentFields, { minLength: 1, maxLength: 5 }), (writes) => {
      let record: JsonObject = nothing;
      for (const sent of [{ ...page, ...writes[0] }, ...writes.slice(1)]) {
        record = checkWrite(record, sent);
      }
      assert.equal(Object.getPrototypeOf({}), Object.prototype);
    }),
    { numRuns: 3_000 },
  );
});
