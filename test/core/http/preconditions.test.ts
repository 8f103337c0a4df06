import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import {
  etagListed,
  evaluatePreconditions,
  ifRangeHolds,
} from '../../../src/core/http/representation/preconditions.ts';
import type { Fields } from '../../../src/core/http/request.ts';

const changedMs = Date.UTC(2025, 0, 2, 3, 4, 5) + 678;
const same = 'Thu, 02 Jan 2025 03:04:05 GMT';
const before = 'Thu, 02 Jan 2025 03:04:04 GMT';
const after = 'Thu, 02 Jan 2025 03:04:06 GMT';

const strong = { etag: '"a"', lastModifiedMs: changedMs };
const weak = { etag: 'W/"a"', lastModifiedMs: changedMs };
const dated = { etag: undefined, lastModifiedMs: changedMs };
const bare = { etag: undefined, lastModifiedMs: undefined };

type Outcome = ReturnType<typeof evaluatePreconditions>;

const outcomes: readonly (readonly [
  fields: Fields,
  whenStrong: Outcome,
  whenWeak: Outcome,
  whenDated: Outcome,
  whenBare: Outcome,
])[] = [
  [{}, 'proceed', 'proceed', 'proceed', 'proceed'],
  // If-Match: strong comparison (RFC 9110 §13.1.1).
  [{ 'if-match': '"a"' }, 'proceed', 'failed', 'failed', 'failed'],
  [{ 'if-match': '"b", "a"' }, 'proceed', 'failed', 'failed', 'failed'],
  [{ 'if-match': 'W/"a"' }, 'failed', 'failed', 'failed', 'failed'],
  [{ 'if-match': '"b"' }, 'failed', 'failed', 'failed', 'failed'],
  [{ 'if-match': '*' }, 'proceed', 'proceed', 'proceed', 'proceed'],
  [{ 'if-match': 'a' }, 'failed', 'failed', 'failed', 'failed'],
  [{ 'if-match': '' }, 'failed', 'failed', 'failed', 'failed'],
  // If-Unmodified-Since (§13.1.4).
  [{ 'if-unmodified-since': same }, 'proceed', 'proceed', 'proceed', 'proceed'],
  [{ 'if-unmodified-since': after }, 'proceed', 'proceed', 'proceed', 'proceed'],
  [{ 'if-unmodified-since': before }, 'failed', 'failed', 'failed', 'proceed'],
  [{ 'if-unmodified-since': 'yesterday' }, 'proceed', 'proceed', 'proceed', 'proceed'],
  // If-None-Match: weak comparison (§13.1.2).
  [{ 'if-none-match': '"a"' }, 'not_modified', 'not_modified', 'proceed', 'proceed'],
  [{ 'if-none-match': 'W/"a"' }, 'not_modified', 'not_modified', 'proceed', 'proceed'],
  [{ 'if-none-match': '"b", W/"a"' }, 'not_modified', 'not_modified', 'proceed', 'proceed'],
  [{ 'if-none-match': '"b"' }, 'proceed', 'proceed', 'proceed', 'proceed'],
  [{ 'if-none-match': '*' }, 'not_modified', 'not_modified', 'not_modified', 'not_modified'],
  [{ 'if-none-match': '' }, 'proceed', 'proceed', 'proceed', 'proceed'],
  // If-Modified-Since (§13.1.3).
  [{ 'if-modified-since': same }, 'not_modified', 'not_modified', 'not_modified', 'proceed'],
  [{ 'if-modified-since': after }, 'not_modified', 'not_modified', 'not_modified', 'proceed'],
  [{ 'if-modified-since': before }, 'proceed', 'proceed', 'proceed', 'proceed'],
  [{ 'if-modified-since': 'yesterday' }, 'proceed', 'proceed', 'proceed', 'proceed'],
  [{ 'if-modified-since': `${same}, ${same}` }, 'proceed', 'proceed', 'proceed', 'proceed'],
  [
    { 'if-modified-since': 'Thursday, 02-Jan-25 03:04:05 GMT' },
    ...(['not_modified', 'not_modified', 'not_modified', 'proceed'] as const),
  ],
  [
    { 'if-modified-since': 'Thu Jan  2 03:04:05 2025' },
    ...(['not_modified', 'not_modified', 'not_modified', 'proceed'] as const),
  ],
  // Together, in the order of §13.2.2.
  [
    { 'if-match': '"a"', 'if-unmodified-since': before },
    ...(['proceed', 'failed', 'failed', 'failed'] as const),
  ],
  [
    { 'if-match': '"a"', 'if-none-match': '"a"' },
    ...(['not_modified', 'failed', 'failed', 'failed'] as const),
  ],
  [
    { 'if-match': '*', 'if-modified-since': same },
    ...(['not_modified', 'not_modified', 'not_modified', 'proceed'] as const),
  ],
  [
    { 'if-unmodified-since': before, 'if-none-match': '"a"' },
    ...(['failed', 'failed', 'failed', 'proceed'] as const),
  ],
  [
    { 'if-unmodified-since': same, 'if-none-match': '"a"' },
    ...(['not_modified', 'not_modified', 'proceed', 'proceed'] as const),
  ],
  [
    { 'if-none-match': '"b"', 'if-modified-since': same },
    ...(['proceed', 'proceed', 'proceed', 'proceed'] as const),
  ],
  [
    { 'if-none-match': '"a"', 'if-modified-since': before },
    ...(['not_modified', 'not_modified', 'proceed', 'proceed'] as const),
  ],
  [
    { 'if-unmodified-since': same, 'if-modified-since': same },
    ...(['not_modified', 'not_modified', 'not_modified', 'proceed'] as const),
  ],
];

suite('preconditions', () => {
  for (const [fields, whenStrong, whenWeak, whenDated, whenBare] of outcomes) {
    test(JSON.stringify(fields), () => {
      assert.equal(evaluatePreconditions(strong, fields), whenStrong, 'strong entity tag');
      assert.equal(evaluatePreconditions(weak, fields), whenWeak, 'weak entity tag');
      assert.equal(evaluatePreconditions(dated, fields), whenDated, 'only a date');
      assert.equal(evaluatePreconditions(bare, fields), whenBare, 'no validator');
    });
  }
});

const ifRanges: readonly (readonly [
  value: string | undefined,
  holds: readonly [whenStrong: boolean, whenWeak: boolean, whenDated: boolean, whenBare: boolean],
])[] = [
  [undefined, [true, true, true, true]],
  ['"a"', [true, false, false, false]],
  ['"b"', [false, false, false, false]],
  ['W/"a"', [false, false, false, false]],
  ['"a", "b"', [false, false, false, false]],
  ['*', [false, false, false, false]],
  ['', [false, false, false, false]],
  [same, [true, true, true, false]],
  ['Thursday, 02-Jan-25 03:04:05 GMT', [true, true, true, false]],
  [before, [false, false, false, false]],
  [after, [false, false, false, false]],
  ['yesterday', [false, false, false, false]],
];

suite('If-Range', () => {
  for (const [value, expected] of ifRanges) {
    test(value ?? 'absent', () => {
      const fields = { 'if-range': value };
      const holds = [strong, weak, dated, bare].map((one) => ifRangeHolds(one, fields));
      assert.deepEqual(holds, expected);
    });
  }
});

suite('a list of entity tags', () => {
  const lists: readonly (readonly [list: string, etag: string, listed: boolean])[] = [
    ['"a","b"', '"b"', true],
    ['"a" , \t"b"', '"b"', true],
    [', ,"a",, "b",', '"b"', true],
    ['"a,b"', '"a,b"', true],
    ['"a,b"', '"b"', false],
    ['"W/"', '"W/"', true],
    ['""', '""', true],
    ['"\xe4"', '"\xe4"', true],
    ['"a\\"', '"a\\"', true],
    ['w/"b"', '"b"', false],
    ['a, "b"', '"b"', false],
    ['"a" "b"', '"b"', false],
    ['"a""b"', '"b"', false],
    ['"a', '"a"', false],
    ['"a b"', '"a b"', false],
    ['*, "a"', '"b"', false],
    ['"b", *', '"a"', false],
    [`${'"x",'.repeat(5000)}"b"`, '"b"', true],
    [`${' '.repeat(30_000)}"b"`, '"b"', false],
  ];
  for (const [list, etag, listed] of lists) {
    test(`${list.slice(0, 30)} ${listed ? 'names' : 'does not name'} ${etag}`, () => {
      assert.equal(etagListed(list, etag, 'weak'), listed);
      assert.equal(etagListed(list, etag, 'strong'), listed);
    });
  }
});
