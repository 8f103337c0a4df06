import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { parseJsonSteps } from '../../../../src/core/values/json/parse-steps.ts';
import { parseJson } from '../../../../src/core/values/json/parse.ts';

/** What a text becomes, with the order of its members, or the message of its failure. */
function outcomeOf(parse: () => unknown): unknown {
  try {
    const value = parse();
    return { value, text: JSON.stringify(value) };
  } catch (error) {
    return (error as Error).message;
  }
}

/** Reads a text in pieces of a few bytes; returns its value and the number of pieces. */
function inPieces(text: string, bytes = 1, values = 1): { value: unknown; pieces: number } {
  const steps = parseJsonSteps(Buffer.from(text), { bytes, values });
  for (let pieces = 1; ; pieces += 1) {
    const step = steps.next();
    if (step.done === true) return { value: step.value, pieces };
  }
}

function assertSame(text: string): void {
  // A reader of bytes may ignore a byte order mark (RFC 8259 §8.1).
  const whole = outcomeOf(() => parseJson(text.replace(/^\ufeff/, '')));
  for (const bytes of [1, 7, 40]) {
    assert.deepEqual(
      outcomeOf(() => inPieces(text, bytes, bytes).value),
      whole,
      text,
    );
  }
}

suite('parseJsonSteps', () => {
  test('reads what parseJson reads, in the same order of members', () => {
    const spaced = fc.tuple(fc.json({ maxDepth: 6 }), fc.constantFrom(0, 1, '\t'));
    fc.assert(
      fc.property(spaced, ([text, space]) => {
        assertSame(JSON.stringify(JSON.parse(text), null, space));
      }),
    );
  });

  test('fails as parseJson does, for a text with anything in it', () => {
    const characters = '{}[],:"\\0e-. \u00e9\ufeff'.split('');
    const found = fc.constantFrom(...characters, '"__proto__":', 'null', '""');
    const changed = fc.tuple(fc.json({ maxDepth: 4 }), fc.nat(), fc.nat({ max: 3 }), found);
    fc.assert(
      fc.property(changed, ([text, place, length, piece]) => {
        const at = place % (text.length + 1);
        assertSame(text.slice(0, at) + piece + text.slice(at + length));
      }),
      { numRuns: 3_000 },
    );
  });

  for (const text of [
    '{"a":[1,2,],"b":3}',
    '{"a":[1,,2]}',
    '[,1]',
    '{,"a":1}',
    '{"a":{,"b":1}}',
    '{"a":[1,{"b":2},3,[4]],"c":5}',
    '[1,{"a":2,}]',
    '[1,2',
    '{"a":[1,2',
    '[1,[2,3}]',
    '[1,2],[3]',
    '[1,2] 3',
    '[[1,2],\ufeff3]',
    '\ufeff[1,2]',
    '{"a":1,"a":{"b":2,"c":3},"a":{"d":4}}',
    '{"a":{"b":1,"c":2},"x":3,"a":{"e":5,"f":6},"g":7}',
    '{"__proto__":{"a":1,"b":2},"c":[3,4],"__proto__":{"d":5,"e":6}}',
    '{"\\u0061":{"b":[1,2],"c":3},"2":4,"1":5}',
    '{"a":[9007199254740993,1e400],"b":"c: 1e400, [1e5","d":"\\",\\"["}',
    `{"v":{"a":[1,2,${'1'.repeat(401)}]}}`,
  ]) {
    test(`reads ${text.slice(0, 60)} as parseJson does`, () => {
      assertSame(text);
    });
  }

  test('ends a piece with a comma at any depth', () => {
    const { value, pieces } = inPieces('{"v":{"operations":[{"a":1,"b":[2,3]},{"a":4}]},"vk":"5"}');
    assert.deepEqual(value, { v: { operations: [{ a: 1, b: [2, 3] }, { a: 4 }] }, vk: '5' });
    assert.equal(pieces, 5);
  });

  test('refuses a piece that is not UTF-8', () => {
    const bytes = Buffer.from('["a","\xff"]', 'latin1');
    const read = (): unknown => [...parseJsonSteps(bytes, { bytes: 1, values: 1 })];
    assert.throws(read, { code: 'ERR_ENCODING_INVALID_ENCODED_DATA' });
  });

  test('has a step for each part of a text with many numbers, and of a long text', () => {
    const numbers = JSON.stringify(Array.from({ length: 200_000 }, (_, at) => at)).replace(
      '[0',
      '[9007199254740993',
    );
    assert.equal([...parseJsonSteps(Buffer.from(numbers))].length, 24);
    const texts = JSON.stringify(Array.from({ length: 2_000 }, () => 'x'.repeat(1_000)));
    assert.equal([...parseJsonSteps(Buffer.from(texts))].length, 15);
  });
});
