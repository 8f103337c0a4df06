import assert from 'node:assert/strict';
import fc from 'fast-check';
import { suite, test } from 'node:test';
import {
  select,
  type Representation,
  type Selection,
} from '../../../src/core/http/representation/represent.ts';
import type { Fields } from '../../../src/core/http/request.ts';

const content = Buffer.from('0123456789'.repeat(10));
const date = 'Thu, 02 Jan 2025 03:04:05 GMT';

const page: Representation = {
  status: 200,
  contentType: 'text/plain; charset=utf-8',
  etag: '"a"',
  lastModifiedMs: Date.UTC(2025, 0, 2, 3, 4, 5),
  fields: [
    ...['Cache-Control', 'max-age=60', 'Vary', 'Accept-Language', 'Content-Language', 'en'],
    ...['Content-Location', '/page.en', 'Expires', date, 'X-Own', 'Vary'],
  ],
  bytesLength: content.length,
};

interface Sent {
  readonly status: number;
  readonly fields: Readonly<Record<string, string>>;
  readonly bytes: string;
}

/**
 * Returns the answer as its client gets it; checks Content-Length and the length of the content.
 */
function send(
  fields: Fields,
  { method = 'GET', ...changes }: Partial<Representation> & { readonly method?: string } = {},
): Sent {
  const selection = select({ ...page, ...changes }, { method, fields });
  const bytes = bytesOf(selection);
  assert.equal(selection.bytesLength, bytes.length);
  const seen: Record<string, string> = {};
  for (let at = 0; at < selection.fields.length; at += 2) {
    const name = selection.fields[at] ?? '';
    assert.ok(!(name in seen), `${name} twice`);
    seen[name] = selection.fields[at + 1] ?? '';
  }
  if (bytes.length > 0) assert.equal(seen['Content-Length'], String(bytes.length));
  return { status: selection.status, fields: seen, bytes: bytes.toString('latin1') };
}

function bytesOf({ parts }: Selection): Buffer {
  return Buffer.concat(
    parts.map((part) =>
      Buffer.isBuffer(part) ? part : content.subarray(part.first, part.last + 1),
    ),
  );
}

const whole = {
  'Content-Type': 'text/plain; charset=utf-8',
  'Content-Length': '100',
  ETag: '"a"',
  'Last-Modified': date,
  'Accept-Ranges': 'bytes',
  'Cache-Control': 'max-age=60',
  Vary: 'Accept-Language',
  'Content-Language': 'en',
  'Content-Location': '/page.en',
  Expires: date,
  'X-Own': 'Vary',
};

suite('a representation', () => {
  test('is sent whole with all its headers', () => {
    assert.deepEqual(send({}), { status: 200, fields: whole, bytes: content.toString() });
  });

  test('for HEAD has the headers of GET without Range, and no content', () => {
    const expected = { status: 200, fields: whole, bytes: '' };
    assert.deepEqual(send({}, { method: 'HEAD' }), expected);
    assert.deepEqual(send({ range: 'bytes=0-9' }, { method: 'HEAD' }), expected);
  });

  test('without content has a length of 0', () => {
    const { status, fields, bytes } = send({}, { bytesLength: 0 });
    assert.deepEqual([status, fields['Content-Length'], bytes], [200, '0', '']);
  });

  test('without content is sent as the whole for all bytes from its beginning', () => {
    const { status, fields, bytes } = send({ range: 'bytes=0-' }, { bytesLength: 0 });
    assert.deepEqual([status, fields['Content-Length'], bytes], [200, '0', '']);
    assert.equal(send({ range: 'bytes=1-' }, { bytesLength: 0 }).status, 416);
  });

  test('as a 304 has the headers of RFC 9110 §15.4.5 and no others', () => {
    const kept = {
      'Cache-Control': 'max-age=60',
      Vary: 'Accept-Language',
      'Content-Location': '/page.en',
      Expires: date,
    };
    const ifNoneMatch = { 'if-none-match': 'W/"a"' };
    const expected = { status: 304, fields: { ETag: '"a"', ...kept }, bytes: '' };
    assert.deepEqual(send(ifNoneMatch), expected);
    assert.deepEqual(send(ifNoneMatch, { method: 'HEAD' }), expected);
    assert.deepEqual(send({ ...ifNoneMatch, range: 'bytes=0-9' }), expected);
    assert.deepEqual(send({ 'if-modified-since': date }, { etag: undefined }).fields, {
      'Last-Modified': date,
      ...kept,
    });
  });

  test('as a 412 or 416 is empty and has no headers of the content', () => {
    const own = { 'Content-Length': '0', Vary: 'Accept-Language', 'X-Own': 'Vary' };
    assert.deepEqual(send({ 'if-match': '"b"', range: 'bytes=0-9' }), {
      status: 412,
      fields: own,
      bytes: '',
    });
    assert.deepEqual(send({ range: 'bytes=100-' }), {
      status: 416,
      fields: { ...own, 'Content-Range': 'bytes */100' },
      bytes: '',
    });
  });

  test('in several ranges names the coding of each part', () => {
    const coded = { fields: ['Content-Encoding', 'br', 'Vary', 'Accept-Encoding'] };
    const one = send({ range: 'bytes=0-4' }, coded);
    assert.equal(one.fields['Content-Encoding'], 'br');
    const several = send({ range: 'bytes=0-4,10-14' }, coded);
    assert.equal(several.status, 206);
    assert.equal(several.fields['Content-Encoding'], undefined);
    assert.equal(several.fields.Vary, 'Accept-Encoding');
    assert.equal(several.bytes.split('\r\nContent-Encoding: br\r\n').length, 3);
  });

  test('with a date of the current second is not valid for If-Range, but for a 304', () => {
    const asked = { range: 'bytes=0-4', 'if-range': date };
    assert.equal(send(asked).status, 206);
    assert.equal(send(asked, { sharesDate: true }).status, 200);
    assert.equal(send({ ...asked, 'if-range': '"a"' }, { sharesDate: true }).status, 206);
    assert.equal(send({ 'if-modified-since': date }, { sharesDate: true }).status, 304);
  });

  test('in one range is a 206 with Content-Range', () => {
    assert.deepEqual(send({ range: 'bytes=10-14' }), {
      status: 206,
      fields: { ...whole, 'Content-Length': '5', 'Content-Range': 'bytes 10-14/100' },
      bytes: '01234',
    });
    assert.equal(send({ range: 'bytes=-3' }).fields['Content-Range'], 'bytes 97-99/100');
    assert.equal(send({ range: 'bytes=0-' }).fields['Content-Range'], 'bytes 0-99/100');
    assert.equal(send({ range: 'bytes=0-4,3-9' }).fields['Content-Range'], 'bytes 0-9/100');
  });

  test('in several ranges is a 206 in parts, without Content-Range', () => {
    const { status, fields, bytes } = send({ range: 'bytes=1-2,50-52' });
    assert.equal(status, 206);
    assert.match(fields['Content-Type'] ?? '', /^multipart\/byteranges; boundary=[0-9a-f]+$/);
    assert.equal(fields['Content-Range'], undefined);
    assert.equal(fields.ETag, '"a"');
    assert.match(
      bytes,
      /Content-Type: text\/plain; charset=utf-8\r\nContent-Range: bytes 1-2\/100/,
    );
    assert.equal(send({ range: 'bytes=1-2,50-52' }, { etag: undefined }).status, 206);
  });

  const partial: readonly (readonly [fields: Fields, status: number])[] = [
    [{ range: 'bytes=0-9', 'if-range': '"a"' }, 206],
    [{ range: 'bytes=0-9', 'if-range': date }, 206],
    [{ range: 'bytes=0-9', 'if-range': '"b"' }, 200],
    [{ range: 'bytes=0-9', 'if-range': 'W/"a"' }, 200],
    [{ range: 'bytes=200-', 'if-range': '"b"' }, 200],
    [{ range: 'bytes=200-', 'if-range': '"a"' }, 416],
    [{ 'if-range': '"b"' }, 200],
    [{ range: 'bytes=0-9', 'if-match': '"a"' }, 206],
    [{ range: 'bytes=0-9', 'if-none-match': '"b"' }, 206],
    [{ range: 'bytes=0-9', 'if-none-match': '"a"', 'if-range': '"a"' }, 304],
    [{ range: 'bytes=0-9', 'if-modified-since': date }, 304],
    [{ range: 'bytes=0-9', 'if-unmodified-since': date, 'if-range': '"a"' }, 206],
    [{ range: 'bytes=9-0' }, 200],
    [{ range: 'lines=0-9' }, 200],
    [{ range: `bytes=${'0-0,2-2,4-4,'.repeat(6)}` }, 200],
  ];
  for (const [fields, status] of partial) {
    test(`${JSON.stringify(fields).slice(0, 90)} is a ${status}`, () => {
      assert.equal(send(fields).status, status);
    });
  }

  test('is subject to conditions and ranges only for GET and HEAD with status 200', () => {
    const asked = { range: 'bytes=0-9', 'if-match': '"b"', 'if-none-match': '*' };
    for (const changes of [{ status: 404 }, { status: 201 }, { method: 'POST' }]) {
      const { status, bytes } = send(asked, changes);
      assert.deepEqual([status, bytes.length], [changes.status ?? 200, 100]);
    }
    assert.equal(send({}, { status: 404 }).fields['Accept-Ranges'], undefined);
  });

  test('with a status that forbids content has none', () => {
    assert.equal(send({}, { status: 204 }).fields['Content-Length'], undefined);
    assert.equal(send({}, { status: 204 }).fields['X-Own'], 'Vary');
    assert.equal(send({}, { status: 205 }).fields['Content-Length'], '0');
    assert.equal(send({}, { status: 304 }).fields['Content-Length'], undefined);
    for (const status of [204, 205, 304]) assert.equal(send({}, { status }).bytes, '');
  });

  test('in a range is exactly that slice of the content', () => {
    const bounds = fc.tuple(fc.nat(120), fc.nat(120));
    fc.assert(
      fc.property(bounds, ([first, last]) => {
        const { status, bytes } = send({ range: `bytes=${first}-${last}` });
        if (last < first) assert.deepEqual([status, bytes.length], [200, 100]);
        else if (first >= 100) assert.equal(status, 416);
        else assert.equal(bytes, content.toString().slice(first, last + 1));
      }),
    );
  });

  test('in several ranges has exactly those slices of the content', () => {
    const bounds = fc.uniqueArray(fc.nat(9), { minLength: 2, maxLength: 5 });
    fc.assert(
      fc.property(bounds, (tens) => {
        const { fields, bytes } = send({
          range: `bytes=${tens.map((ten) => `${ten * 10}-${ten * 10 + 8}`).join(',')}`,
        });
        const boundary = fields['Content-Type']?.split('boundary=')[1] ?? '';
        const parts = bytes.split(`--${boundary}`).slice(1, -1);
        const slices = parts.map((part) => part.split('\r\n\r\n')[1]?.slice(0, -2));
        assert.deepEqual(
          slices,
          tens.map((ten) => content.toString().slice(ten * 10, ten * 10 + 9)),
        );
      }),
    );
  });
});
