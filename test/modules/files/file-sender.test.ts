import assert from 'node:assert/strict';
import { open, rename, rm, truncate, utimes, writeFile } from 'node:fs/promises';
import { get, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { startSite } from '../../harness.ts';
import { ask, eventually, openDescriptors, type Seen } from './disk-rig.ts';

const ini = '[disk.site]\nroot = site\n';
const small = Buffer.from(Array.from({ length: 1_000 }, (_, at) => (at * 7) & 255));
const large = Buffer.from(Array.from({ length: 400_000 }, (_, at) => (at * 7 + (at >> 8)) & 255));
const modified = new Date('2025-01-02T03:04:05.678Z');
const modifiedField = 'Thu, 02 Jan 2025 03:04:05 GMT';

/** The same expectations for files in memory and files that are read while they are sent. */
const contents = { 'small.bin': small, 'large.bin': large };

for (const [name, content] of Object.entries(contents)) {
  suite(`${name}, of ${content.length} bytes,`, () => {
    const length = content.length;
    const start = async (t: Parameters<typeof startSite>[0]) => {
      const site = await startSite(t, { ini, files: { [`site/${name}`]: content } });
      const file = join(site.folder, 'site', name);
      await utimes(file, modified, modified);
      const send = (headers: Readonly<Record<string, string>> = {}, method = 'GET') =>
        ask(site.url, `/${name}`, { headers, method });
      return { file, send, etag: (await send()).fields.etag ?? '' };
    };

    test('is sent whole, with a strong entity tag, Last-Modified and Content-Type', async (t) => {
      const { send, etag } = await start(t);
      const { status, bytes, fields } = await send();
      assert.equal(status, 200);
      assert.ok(bytes.equals(content));
      assert.match(etag, /^"[\w-]+"$/);
      assert.equal(fields['last-modified'], modifiedField);
      assert.equal(fields['content-type'], 'application/octet-stream');
      assert.equal(fields['content-length'], String(length));
      assert.equal(fields['accept-ranges'], 'bytes');
      assert.equal(fields['transfer-encoding'], undefined);
    });

    test('gets a 304 if the client has it already', async (t) => {
      const { send, etag } = await start(t);
      const cases: readonly (readonly [Readonly<Record<string, string>>, number])[] = [
        [{ 'if-none-match': etag }, 304],
        [{ 'if-none-match': `W/${etag}` }, 304],
        [{ 'if-none-match': `"x", ${etag}` }, 304],
        [{ 'if-none-match': '*' }, 304],
        [{ 'if-none-match': '"x"' }, 200],
        [{ 'if-none-match': '"x"', 'if-modified-since': modifiedField }, 200],
        [{ 'if-modified-since': modifiedField }, 304],
        [{ 'if-modified-since': 'Thu, 02 Jan 2025 03:04:04 GMT' }, 200],
        [{ 'if-modified-since': 'yesterday' }, 200],
        [{ 'if-match': etag }, 200],
        [{ 'if-match': `W/${etag}` }, 412],
        [{ 'if-unmodified-since': 'Thu, 02 Jan 2025 03:04:04 GMT' }, 412],
        [{ 'if-unmodified-since': modifiedField, range: 'bytes=0-0' }, 206],
        [{ 'if-none-match': etag, range: 'bytes=0-0' }, 304],
      ];
      for (const [headers, wanted] of cases) {
        for (const method of ['GET', 'HEAD']) {
          const { status, bytes, fields } = await send(headers, method);
          const title = `${method} ${JSON.stringify(headers)}`;
          // A range is for GET only (RFC 9110 §14.2).
          const expected = method === 'HEAD' && wanted === 206 ? 200 : wanted;
          assert.equal(status, expected, title);
          if (status === 304) assert.equal(fields.etag, etag, title);
          if (method === 'HEAD' || status > 299) assert.equal(bytes.length, 0, title);
        }
      }
    });

    test('is sent in part for one range', async (t) => {
      const { send } = await start(t);
      const cases: readonly (readonly [range: string, first: number, last: number])[] = [
        ['bytes=0-0', 0, 0],
        ['bytes=10-19', 10, 19],
        ['bytes=990-', 990, length - 1],
        ['bytes=-1', length - 1, length - 1],
        [`bytes=-${length + 5}`, 0, length - 1],
        [`bytes=500-${length + 5}`, 500, length - 1],
        ['bytes=0-9,5-14', 0, 14],
        [`bytes=${length}-,7-8`, 7, 8],
      ];
      for (const [range, first, last] of cases) {
        const { status, bytes, fields } = await send({ range });
        assert.equal(status, 206, range);
        assert.equal(fields['content-range'], `bytes ${first}-${last}/${length}`, range);
        assert.ok(bytes.equals(content.subarray(first, last + 1)), range);
      }
    });

    test('is sent as multipart/byteranges for several ranges', async (t) => {
      const { send } = await start(t);
      const seen = await send({ range: `bytes=-3, 0-1, 500-${length - 100}` });
      assert.equal(seen.status, 206);
      assert.equal(seen.fields['content-range'], undefined);
      assert.equal(seen.fields['content-length'], String(seen.bytes.length));
      const parts = partsOf(seen);
      assert.deepEqual(
        parts.map(({ head }) => head),
        [
          [length - 3, length - 1],
          [0, 1],
          [500, length - 100],
        ].map(
          ([first, last]) =>
            'Content-Type: application/octet-stream\r\n' +
            `Content-Range: bytes ${first ?? 0}-${last ?? 0}/${length}`,
        ),
      );
      const together = Buffer.concat(parts.map(({ body }) => body));
      const wanted = [
        content.subarray(-3),
        content.subarray(0, 2),
        content.subarray(500, length - 99),
      ];
      assert.ok(together.equals(Buffer.concat(wanted)));
    });

    test('gets 416 beyond its end, and is whole for a range that is not valid', async (t) => {
      const { send } = await start(t);
      for (const range of [`bytes=${length}-`, 'bytes=-0', `bytes=${length}-${length + 9}`]) {
        const { status, fields, bytes } = await send({ range });
        assert.equal(status, 416, range);
        assert.equal(fields['content-range'], `bytes */${length}`, range);
        assert.equal(bytes.length, 0, range);
      }
      for (const range of ['bytes=9-1', 'bytes', 'bytes=', 'lines=1-2', 'bytes=a-b', '']) {
        const { status, bytes } = await send({ range });
        assert.deepEqual([status, bytes.length], [200, length], range);
      }
    });

    test('honours If-Range', async (t) => {
      const { send, etag, file } = await start(t);
      const range = 'bytes=1-2';
      const cases: readonly (readonly [ifRange: string, status: number])[] = [
        [etag, 206],
        [modifiedField, 206],
        [`W/${etag}`, 200],
        ['"x"', 200],
        [`${etag}, "x"`, 200],
        ['Thu, 02 Jan 2025 03:04:04 GMT', 200],
        ['Thu, 02 Jan 2025 03:04:06 GMT', 200],
        ['nonsense', 200],
      ];
      for (const [ifRange, status] of cases) {
        assert.equal((await send({ range, 'if-range': ifRange })).status, status, ifRange);
      }
      await writeFile(file, Buffer.from(content.toReversed()));
      const later = await eventually(
        () => send({ range, 'if-range': etag }),
        ({ status }) => status === 200,
      );
      assert.ok(later.bytes.equals(Buffer.from(content.toReversed())));
    });

    test('leaves no file open, whatever the request is', async (t) => {
      const { send, etag, file } = await start(t);
      for (const headers of [
        {},
        { range: 'bytes=1-2' },
        { range: 'bytes=1-2,5-6' },
        { range: 'bytes=9999999-' },
        { 'if-none-match': etag },
        { 'if-match': '"x"' },
      ]) {
        for (const method of ['GET', 'HEAD']) await send(headers, method);
      }
      await eventually(
        () => openDescriptors(file),
        (count) => count === 0,
      );
    });
  });
}

interface MultipartPart {
  readonly head: string;
  readonly body: Buffer;
}

/** Parses multipart/byteranges (RFC 9110 §14.6). */
function partsOf({ fields, bytes }: Seen): readonly MultipartPart[] {
  const type = /^multipart\/byteranges; boundary=([\w-]+)$/.exec(fields['content-type'] ?? '');
  assert.ok(type);
  const text = bytes.toString('latin1');
  const delimiter = `\r\n--${type[1] ?? ''}`;
  const [before, ...sections] = `\r\n${text}`.split(delimiter);
  assert.equal(before, '');
  assert.equal(sections.pop(), '--\r\n');
  return sections.map((section) => {
    const end = section.indexOf('\r\n\r\n');
    assert.ok(section.startsWith('\r\n') && end > 0);
    return { head: section.slice(2, end), body: Buffer.from(section.slice(end + 4), 'latin1') };
  });
}

suite('a file that changes while it is sent', () => {
  const size = 64 << 20;
  const start = async (t: Parameters<typeof startSite>[0]) => {
    const site = await startSite(t, { ini, files: { 'site/page.txt': 'a page' } });
    const file = join(site.folder, 'site/film.bin');
    // A sparse file: large without writing its content.
    await (await open(file, 'w')).close();
    await truncate(file, size);
    const message = await new Promise<IncomingMessage>((resolve, reject) => {
      get(`${site.url}/film.bin`, { agent: false }, resolve).once('error', reject);
    });
    assert.equal(message.headers['content-length'], String(size));
    return { site, file, message };
  };

  test('breaks off the connection if it becomes shorter, and the server keeps running', async (t) => {
    const { site, file, message } = await start(t);
    await truncate(file, 1_000);
    let received = 0;
    await assert.rejects(async () => {
      for await (const chunk of message) received += (chunk as Buffer).length;
    });
    assert.ok(received < size && !message.complete);
    assert.equal((await ask(site.url, '/page.txt')).text, 'a page');
    await eventually(
      () => openDescriptors(file),
      (count) => count === 0,
    );
    await eventually(site.logged, (text) =>
      /GET localhost:\d+\/film\.bin .*\(cut off\)/.test(text),
    );
  });

  const harmless: readonly (readonly [string, (file: string) => Promise<void>])[] = [
    ['removed', (file) => rm(file)],
    [
      'replaced',
      async (file) => {
        await writeFile(`${file}.new`, 'new');
        await rename(`${file}.new`, file);
      },
    ],
    ['made longer', (file) => truncate(file, 2 * size)],
  ];
  for (const [title, change] of harmless) {
    test(`is sent unchanged to its end when it has been ${title}`, async (t) => {
      const { message, file } = await start(t);
      await change(file);
      let received = 0;
      for await (const chunk of message) {
        const bytes = chunk as Buffer;
        received += bytes.length;
        assert.ok(bytes[0] === 0 && bytes.at(-1) === 0);
      }
      assert.ok(received === size && message.complete);
    });
  }

  test('is closed when the client goes away', async (t) => {
    const { message, file } = await start(t);
    assert.equal(openDescriptors(file), 1);
    message.on('error', () => undefined).destroy();
    await eventually(
      () => openDescriptors(file),
      (count) => count === 0,
    );
  });
});

test('many concurrent first requests for a file get the same answer', async (t) => {
  const site = await startSite(t, { ini, files: { 'site/small.bin': small } });
  const seen = await Promise.all(Array.from({ length: 50 }, () => ask(site.url, '/small.bin')));
  assert.equal(new Set(seen.map(({ fields }) => fields.etag)).size, 1);
  assert.ok(seen.every(({ bytes }) => bytes.equals(small)));
});

test('a file dated in the future has a Last-Modified of now', async (t) => {
  const site = await startSite(t, { ini, files: { 'site/small.bin': small } });
  const future = new Date(Date.now() + 86_400_000);
  await utimes(join(site.folder, 'site/small.bin'), future, future);
  const { fields } = await ask(site.url, '/small.bin');
  // Node's server renews its Date once a second, and late under load.
  assert.ok(Date.parse(fields['last-modified'] ?? '') <= Date.parse(fields.date ?? '') + 1_000);
});
