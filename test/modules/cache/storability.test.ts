import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { refusalToStore, splitFields } from '../../../src/modules/cache/storability.ts';

const date = ['Date', 'Fri, 02 Jan 2026 12:00:00 GMT'];
const modified = ['Last-Modified', 'Thu, 01 Jan 2026 12:00:00 GMT'];
const cc = (value: string): readonly string[] => ['Cache-Control', value];
const nowMs = Date.UTC(2026, 0, 2, 12);

suite('a response is stored (RFC 9111 §3)', () => {
  type Row = readonly [
    fields: readonly string[],
    refusal: string | undefined,
    more?: {
      readonly status?: number;
      readonly hasCredentials?: true;
      readonly storesWithoutCookies?: true;
    },
  ];
  const cases: readonly Row[] = [
    [cc('max-age=1'), undefined],
    [cc('max-age=1'), undefined, { status: 500 }],
    [cc('max-age=1'), undefined, { status: 599 }],
    [cc('max-age=1'), 'status', { status: 304 }],
    // They say what is wrong with one request, beyond its URL.
    ...[400, 401, 406, 407, 408, 409, 411, 412, 413, 415, 416, 417, 421, 422, 423, 424, 425].map(
      (status): Row => [cc('public, max-age=1'), 'status', { status }],
    ),
    ...[426, 428, 429, 431, 511].map((status): Row => [
      cc('public, max-age=1'),
      'status',
      { status },
    ]),
    [modified, undefined],
    [modified, 'status', { status: 500 }],
    [[...modified, ...cc('public')], undefined, { status: 500 }],
    [['ETag', '"x"'], undefined],
    [[], 'expired'],
    [cc('max-age=0'), 'expired'],
    [[...cc('max-age=0'), ...modified], undefined],
    [cc('max-age=0, stale-if-error=9'), undefined],
    [cc('max-age=9, no-store'), 'no-store'],
    [cc('max-age=9, No-Store'), 'no-store'],
    [cc('max-age=9, no-store, must-understand'), undefined],
    [cc('max-age=9, no-store, must-understand'), 'must-understand', { status: 599 }],
    [cc('max-age=9, private'), 'private'],
    [cc('max-age=9, private="a"'), undefined],
    [cc('max-age=9, private=""'), 'private'],
    [cc('max-age=9, no-cache'), 'expired'],
    [[...cc('no-cache'), 'ETag', '"x"'], undefined],
    [[...cc('max-age=9'), 'Vary', 'a'], undefined],
    [[...cc('max-age=9'), 'Vary', 'a, *'], 'vary'],
    [[...cc('max-age=9'), 'Vary', 'a', 'vary', ' *'], 'vary'],
    [cc('max-age=9'), 'credentials', { hasCredentials: true }],
    [cc('max-age=9, public'), undefined, { hasCredentials: true }],
    [cc('max-age=9, must-revalidate'), undefined, { hasCredentials: true }],
    [cc('s-maxage=9'), undefined, { hasCredentials: true }],
    [cc('s-maxage=9, private'), 'private', { hasCredentials: true }],
    [modified, 'credentials', { hasCredentials: true }],
    [[...modified, ...cc('must-revalidate')], 'cookie', { hasCredentials: true }],
    [[...modified, ...cc('public')], undefined, { hasCredentials: true }],
    [[...cc('max-age=9'), 'Set-Cookie', 'a=b'], 'cookie'],
    [[...cc('public, s-maxage=9'), 'set-cookie', 'a=b'], 'cookie'],
    [[...cc('max-age=9'), 'Set-Cookie', 'a=b'], 'cookie', { status: 302 }],
    [['Expires', 'Sat, 03 Jan 2026 12:00:00 GMT', 'Set-Cookie', 'a=b'], 'cookie'],
    [['CDN-Cache-Control', 'max-age=9', 'Set-Cookie', 'a=b'], 'cookie'],
    [[...modified, 'Set-Cookie', 'a=b'], 'cookie'],
    [[...cc('max-age=9, private="Set-Cookie"'), 'Set-Cookie', 'a=b'], undefined],
    [[...cc('max-age=9, no-cache="a, set-cookie"'), 'Set-Cookie', 'a=b'], undefined],
    [[...cc('max-age=9, private="a"'), 'Set-Cookie', 'a=b'], 'cookie'],
    [[...cc('max-age=9'), 'Set-Cookie', 'a=b'], undefined, { storesWithoutCookies: true }],
    [[...modified, 'Set-Cookie', 'a=b'], undefined, { storesWithoutCookies: true }],
    [[...cc('private'), 'Set-Cookie', 'a=b'], 'private', { storesWithoutCookies: true }],
    [['CDN-Cache-Control', 'max-age=9', ...cc('no-store')], undefined],
    [['CDN-Cache-Control', 'no-store', ...cc('max-age=9')], 'no-store'],
  ];
  for (const [fields, refusal, more = {}] of cases) {
    const { status = 200, ...asking } = more;
    test(`${status} ${fields.join(' ')} ${Object.keys(asking).join()}: ${refusal ?? 'yes'}`, () => {
      const received = {
        status,
        fields: [...date, ...fields],
        requestMs: nowMs,
        responseMs: nowMs,
      };
      const usual = { hasCredentials: false, storesWithoutCookies: false };
      assert.equal(refusalToStore(received, { ...usual, ...asking }), refusal);
    });
  }
});

test('private fields and Age are not stored (RFC 9111 §3.1, §5.2.2.4)', () => {
  const fields = ['A', '1', 'Age', '3', 'B', '2', 'a', '4', ...cc('no-cache="a", private=b')];
  assert.deepEqual(splitFields([...fields, 'Set-Cookie', 'c=d']), {
    stored: cc('no-cache="a", private=b'),
    privateFields: ['A', '1', 'B', '2', 'a', '4', 'Set-Cookie', 'c=d'],
  });
});
