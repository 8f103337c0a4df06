import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import {
  jsonBytes,
  jsonDigest,
  preparedFor,
  PreparedJson,
} from '../../../src/core/values/json/prepared-json.ts';

const value = fc.oneof(fc.jsonValue(), fc.constant(undefined));
const prepared = fc.jsonValue().map((one) => new PreparedJson(one));
const flat = fc.dictionary(fc.string(), fc.oneof(value, prepared));
const envelope = fc.dictionary(fc.string(), fc.oneof(value, prepared, flat));

suite('JSON with prepared values', () => {
  test('has the text that JSON.stringify returns', () => {
    fc.assert(
      fc.property(envelope, (object) => {
        assert.equal(jsonBytes(object).toString(), JSON.stringify(object));
      }),
    );
  });

  test('has equal digests only for equal texts', () => {
    const text = (a: unknown, b: unknown) => jsonDigest({ data: { a, b: new PreparedJson(b) } });
    assert.equal(text(1, { c: 2 }), text(1, { c: 2 }));
    assert.notEqual(text(1, { c: 2 }), text(2, { c: 2 }));
    assert.notEqual(text(1, { c: 2 }), text(1, { c: 3 }));
    const { digest } = new PreparedJson({ c: 2 });
    assert.notEqual(text(1, { c: 2 }), jsonDigest({ data: { a: 1, b: digest } }));
  });

  test('is prepared once for an owner', () => {
    let made = 0;
    const textOf = preparedFor((owner: { readonly large: string }) => {
      made += 1;
      return owner;
    });
    const owner = { large: 'x' };
    const envelopes = [1, 2, 3].map((query) => ({ data: { query, enginedata: textOf(owner) } }));
    for (const one of envelopes) jsonBytes(one);
    assert.equal(made, 1);
    assert.equal(
      jsonBytes(envelopes[2] ?? {}).toString(),
      '{"data":{"query":3,"enginedata":{"large":"x"}}}',
    );
  });
});
