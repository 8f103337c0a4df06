import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { outlineJson } from '../../../src/core/values/json/json-outline.ts';

const names = ['a', 'id', 'v'];

/** How deep arrays and objects nest, by recursion. */
function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

suite('the outline of a JSON text', () => {
  test('has the depth and the members that JSON.parse finds', () => {
    const value = fc.dictionary(
      fc.oneof(fc.constantFrom('a', 'id', 'v', '"', '\\'), fc.string()),
      fc.jsonValue({ maxDepth: 6 }),
    );
    const indent = fc.constantFrom('', ' ', '\n\t');
    fc.assert(
      fc.property(value, indent, (object, space) => {
        const bytes = Buffer.from(JSON.stringify(object, null, space));
        const outline = outlineJson(bytes, names);
        assert.equal(outline.depth, depthOf(object));
        for (const name of names) {
          const member = outline.members.get(name);
          assert.equal(member !== undefined, Object.hasOwn(object, name));
          if (member === undefined) continue;
          const text = bytes.toString('utf8', member.start, member.end);
          assert.deepEqual(JSON.parse(text), JSON.parse(JSON.stringify(object[name])));
          assert.equal(member.depth, depthOf(object[name]));
        }
      }),
    );
  });

  test('finds a name in every JSON spelling, and the last member of that name', () => {
    for (const [text, wanted] of [
      ['{"\\u0061":1}', '1'],
      ['{"a":1,"\\u0061" : {"a":2} }', ' {"a":2} '],
      ['{"b":{"a":1},"a":[2]}', '[2]'],
      ['{"a":"}\\",\\\\","b":1}', '"}\\",\\\\"'],
      ['{"\\":1,\\"a":1}', undefined],
      ['["a",1]', undefined],
      ['"a"', undefined],
    ] as const) {
      const member = outlineJson(Buffer.from(text), names).members.get('a');
      assert.equal(member && text.slice(member.start, member.end), wanted, text);
    }
  });

  test('counts values, and ends for a text that is not JSON', () => {
    assert.equal(outlineJson(Buffer.from('{"a":[1,[],{}],"b":"x,[{"}'), names).values, 8);
    for (const text of [
      '',
      '{',
      '{"a',
      '{"a\\',
      '{"a"',
      '{"a":',
      '}}}',
      ']{"a":1',
      '{"a","b":1}',
    ]) {
      outlineJson(Buffer.from(text), names);
    }
    assert.equal(outlineJson(Buffer.from('['.repeat(100_000)), names).depth, 100_000);
  });
});
