import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { parseDistinct, parseJson } from '../../../../src/core/values/json/parse.ts';

suite('JSON with a member twice', () => {
  const refused: readonly (readonly [text: string, field: string])[] = [
    ['{"a":1,"a":2}', 'a'],
    ['{"a":1,"a":1}', 'a'],
    ['{ "a" : 1 , "b" : {} , "a" : 2 }', 'a'],
    ['{"v":{"path":"/a","kind":"x","path":"/b"}}', 'path'],
    ['{"v":{"data":[1,{"to":1},{"to":1,"x":[{}],"to":2}]}}', 'data.2.to'],
    ['{"a":1,"\\u0061":2}', 'a'],
    ['{"\\"":1,"\\u0022":2}', '"'],
    ['{"__proto__":1,"__proto__":2}', '__proto__'],
    ['{"":1,"":2}', ''],
    ['{"a":"\\\\","b":":{,[","b":1}', 'b'],
    ['{"n":9007199254740993,"n":9007199254740993}', 'n'],
    ['[{"a":{"b":1}},{"a":{"b":1,"b":1}}]', '1.a.b'],
    ['{"é":1,"\\u00e9":2}', 'é'],
  ];
  for (const [text, field] of refused) {
    test(`is refused by its name: ${text}`, () => {
      assert.throws(() => parseDistinct(text), { code: 'invalid', field });
    });
  }

  const taken = [
    ...['{}', '[]', '1', '"a:b"', '{"a":":","b":"\\":\\""}', '{"a":{"a":{"a":1}},"b":[{"a":1}]}'],
    ...['{"a":1,"A":2}', '{"__proto__":1}', '{"1":1,"01":2}', '{"n":9007199254740993,"m":1e400}'],
    '{"rawJSON":"1","constructor":{"name":1}}',
  ];
  for (const text of taken) {
    test(`other JSON is taken as it is: ${text}`, () => {
      assert.deepEqual(parseDistinct(text), parseJson(text));
    });
  }

  test('no value is refused that JSON.stringify has written', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value, undefined, 1);
        assert.deepEqual(parseDistinct(text), parseJson(text));
      }),
    );
  });
});
