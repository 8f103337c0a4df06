import assert from 'node:assert/strict';
import { open } from 'node:fs/promises';
import { once } from 'node:events';
import { createServer, get, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { suite, test, type TestContext } from 'node:test';
import { serverFolder, startServed } from '../../process.ts';

const mib = 1 << 20;
const gib = 1 << 30;
const memoryBytesMax = 200 * mib;
/** More than the process may use, so that it cannot hold the content. */
const fetchedBytes = 256 * mib;

/**
 * The bytes at a position of every test file: cheap to make, and different from their neighbours.
 */
function patternAt(position: number, length: number): Buffer {
  const piece = Buffer.alloc(length);
  for (let at = 0; at < length; at += 1)
    piece[at] = ((position + at) * 31 + ((position + at) >> 8)) & 255;
  return piece;
}

const block = patternAt(0, mib);

/** Writes a file of a size that repeats one block of a mebibyte. */
async function writePattern(path: string, size: number): Promise<void> {
  const file = await open(path, 'w');
  for (let position = 0; position < size; position += mib) {
    await file.write(block.subarray(0, Math.min(mib, size - position)));
  }
  await file.close();
}

/** Writes a sparse file of a size that has the block at some positions. */
async function writePieces(path: string, size: number, positions: readonly number[]) {
  const file = await open(path, 'w');
  await file.truncate(size);
  for (const position of positions) await file.write(block, 0, mib, position);
  await file.close();
}

/** The first position at which bytes differ from a test file; undefined if they are equal. */
function firstDifference(bytes: Uint8Array, position: number): number | undefined {
  for (let at = 0; at < bytes.length;) {
    const from = (position + at) % mib;
    const length = Math.min(mib - from, bytes.length - at);
    // Compared byte by byte: hashing takes longer.
    if (block.compare(bytes, at, at + length, from, from + length) !== 0) return position + at;
    at += length;
  }
  return undefined;
}

/** Requests bytes of a file, and compares them with the file. */
async function requireBytes(
  url: string,
  { range, first, last, size }: { range?: string; first: number; last: number; size: number },
): Promise<void> {
  const message = await new Promise<IncomingMessage>((resolve, reject) => {
    get(url, { headers: range === undefined ? {} : { range } }, resolve).once('error', reject);
  });
  const what = `${range ?? 'all'} of ${size}`;
  assert.equal(message.statusCode, range === undefined ? 200 : 206, what);
  const contentRange = range === undefined ? undefined : `bytes ${first}-${last}/${size}`;
  assert.equal(message.headers['content-range'], contentRange);
  assert.equal(message.headers['content-length'], String(last - first + 1));
  let position = first;
  for await (const chunk of message as AsyncIterable<Buffer>) {
    assert.equal(firstDifference(chunk, position), undefined, what);
    position += chunk.length;
  }
  assert.equal(position, last + 1, what);
}

suite('served bytes equal the bytes on disk', () => {
  const sizes = [
    1,
    2,
    1023,
    4096,
    65_537,
    256 * 1024 - 1,
    256 * 1024,
    256 * 1024 + 1,
    5 * mib + 3,
    fetchedBytes,
  ];

  test('from one byte to 256 MiB, whole and in ranges, while the server stays under 200 MiB', async (t) => {
    const { folder, iniFile } = await serverFolder(t, '[disk.site]\nroot = site\n', {
      'site/index.html': '',
    });
    for (const size of sizes) await writePattern(join(folder, `site/${size}.bin`), size);
    const served = await startServed(t, iniFile);
    for (const size of sizes) {
      const url = `${served.url}/${size}.bin`;
      await requireBytes(url, { first: 0, last: size - 1, size });
      for (const [range, first, last] of rangesOf(size)) {
        await requireBytes(url, { range, first, last, size });
      }
    }
    assert.ok(served.peakBytes() < memoryBytesMax, `${served.peakBytes() / mib} MiB at the most`);
  });

  test('in ranges of a file of 5 GiB, also across 2 GiB and 4 GiB', async (t) => {
    const { folder, iniFile } = await serverFolder(t, '[disk.site]\nroot = site\n', {
      'site/index.html': '',
    });
    const size = 5 * gib;
    const written = [0, 2 * gib - mib, 2 * gib, 4 * gib - mib, 4 * gib, size - mib];
    await writePieces(join(folder, 'site/large.bin'), size, written);
    const served = await startServed(t, iniFile);
    for (const [first, last] of [
      [0, 0],
      [2 * gib - 50_000, 2 * gib + 50_000],
      [4 * gib - 50_000, 4 * gib + 50_000],
      [size - 70_000, size - 1],
    ] as const) {
      const range = `bytes=${first}-${last}`;
      await requireBytes(`${served.url}/large.bin`, { range, first, last, size });
    }
  });
});

function rangesOf(size: number): readonly (readonly [string, number, number])[] {
  const middle = Math.floor(size / 2);
  const end = Math.min(size - 1, middle + 100_000);
  return [
    ['bytes=0-0', 0, 0],
    [`bytes=${middle}-${end}`, middle, end],
    ['bytes=-1', size - 1, size - 1],
    [`bytes=${Math.max(0, size - 70_000)}-`, Math.max(0, size - 70_000), size - 1],
  ];
}

/** A source that sends content of a size as fast as it is read. */
async function startSource(t: TestContext, size: number, fields = {}): Promise<string> {
  const server = createServer((_, response) => {
    response.writeHead(200, { 'content-length': size, ...fields });
    let left = size;
    const body = new Readable({
      highWaterMark: mib,
      read() {
        const length = Math.min(mib, left);
        left -= length;
        this.push(length === 0 ? null : block.subarray(0, length));
      },
    });
    body.pipe(response);
    response.once('close', () => body.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  assert.ok(address !== null && typeof address === 'object');
  return `http://127.0.0.1:${address.port}`;
}

test('two slow readers of 256 MiB of fetched content keep the process under 200 MiB', async (t) => {
  const source = await startSource(t, fetchedBytes);
  const rule = { path: '/far', kind: 'content.fetch', enginedata: { source: `${source}/` } };
  const { iniFile } = await serverFolder(
    t,
    'import = rules.ndjson\n[fetch]\nallow_private = 127.0.0.0/8\n',
    { 'rules.ndjson': JSON.stringify(rule) },
  );
  const served = await startServed(t, iniFile);
  const readers = await Promise.all([openReader(served.url), openReader(served.url)]);
  // The readers read in turns, so each is slower than the source.
  for (let read = 0; read < fetchedBytes; read += 16 * mib) {
    for (const reader of readers) await reader.take(16 * mib);
  }
  assert.ok(served.peakBytes() < memoryBytesMax, `${served.peakBytes() / mib} MiB at the most`);
});

test('clients that do not read cost no copy of the content that they request', async (t) => {
  const source = await startSource(t, 32 * mib, { 'Cache-Control': 'max-age=600' });
  const rules = [
    { path: '/far', kind: 'content.fetch', enginedata: { source: `${source}/` } },
    { path: '/page', kind: 'content', contenttype: 'text/plain', content: 'x'.repeat(12 * mib) },
  ];
  const { iniFile } = await serverFolder(
    t,
    'import = rules.ndjson\n[fetch]\nallow_private = 127.0.0.0/8\n',
    { 'rules.ndjson': rules.map((rule) => JSON.stringify(rule)).join('\n') },
  );
  const served = await startServed(t, iniFile);
  assert.equal((await (await fetch(`${served.url}/far`)).arrayBuffer()).byteLength, 32 * mib);
  let kept = false;
  while (!kept) {
    const answer = await fetch(`${served.url}/far`, { method: 'HEAD' });
    kept = answer.headers.get('cache-status')?.startsWith('waymark; hit') === true;
  }
  assert.equal((await fetch(`${served.url}/page`)).status, 200);
  const before = served.forgetPeak();
  const parts = 'Range: bytes=0-5999999,6000001-11999999\r\n';
  for (let count = 0; count < 16; count += 1) {
    await openIdle(t, `${served.url}/far`, '', 200);
    await openIdle(t, `${served.url}/page`, parts, 206);
  }
  const more = served.peakBytes() - before;
  assert.ok(more < 100 * mib, `${more / mib} MiB more for 32 clients`);
});

/** A client that reads the beginning of a response with a status, and nothing more. */
async function openIdle(
  t: TestContext,
  url: string,
  fields: string,
  status: number,
): Promise<void> {
  const { hostname, port, pathname } = new URL(url);
  const socket = connect(Number(port), hostname);
  t.after(() => socket.destroy());
  socket.write(`GET ${pathname} HTTP/1.1\r\nHost: a.example\r\n${fields}\r\n`);
  const [head] = (await once(socket, 'data')) as [Buffer];
  socket.pause();
  assert.equal(head.toString('latin1', 9, 12), String(status));
}

/** A client that reads only on request. */
async function openReader(url: string) {
  const message = await new Promise<IncomingMessage>((resolve, reject) => {
    get(`${url}/far`, resolve).once('error', reject);
  });
  assert.equal(message.statusCode, 200);
  let position = 0;
  const chunks = message.iterator()[Symbol.asyncIterator]() as AsyncIterator<Buffer, undefined>;
  let held = Buffer.alloc(0);
  return {
    async take(length: number): Promise<void> {
      let left = length;
      while (left > 0) {
        if (held.length === 0) {
          const next = await chunks.next();
          assert.ok(next.done !== true, 'the body ended early');
          held = next.value as Buffer<ArrayBuffer>;
        }
        const taken = held.subarray(0, left);
        assert.equal(firstDifference(taken, position), undefined);
        position += taken.length;
        left -= taken.length;
        held = held.subarray(taken.length);
      }
    },
  };
}
