import assert from 'node:assert/strict';
import fc from 'fast-check';
import { suite, test } from 'node:test';
import { splitList, trimOws, unquote } from '../../../src/core/http/syntax.ts';

suite('a list', () => {
  const lists: readonly (readonly [text: string, elements: readonly string[] | undefined])[] = [
    ['', []],
    ['a', ['a']],
    [' a , b,\tc ', ['a', 'b', 'c']],
    [',, a,,', ['a']],
    ['a="b,c", d', ['a="b,c"', 'd']],
    ['a="b\\",c", d', ['a="b\\",c"', 'd']],
    ['a="b\\\\",c', ['a="b\\\\"', 'c']],
    ['a\\,b', ['a\\', 'b']],
    ['"', undefined],
    ['a, "b', undefined],
    ['"a\\"', undefined],
    ['\u00a0a\u00a0', ['\u00a0a\u00a0']],
  ];
  for (const [text, elements] of lists) {
    test(JSON.stringify(text), () => {
      assert.deepEqual(splitList(text, ','), elements);
    });
  }

  test('is trimmed of spaces and tabs only', () => {
    assert.equal(trimOws('\t a b\t '), 'a b');
    assert.equal(trimOws('\n a'), '\n a');
    assert.equal(trimOws(' \t'), '');
  });
});

test('a quoted string is unescaped', () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      assert.equal(unquote(`"${text.replace(/["\\]/g, '\\$&')}"`), text);
    }),
  );
  assert.equal(unquote('a'), 'a');
});
