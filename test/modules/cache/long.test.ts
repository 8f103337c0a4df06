import assert from 'node:assert/strict';
import { existsSync, openSync } from 'node:fs';
import { readdir, rm, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test, type TestContext } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { crc32 } from 'node:zlib';
import { discard } from '../../../src/core/http/reply.ts';
import type { CacheStore } from '../../../src/modules/cache/cache-store.ts';
import { contentFile } from '../../../src/modules/cache/content-file.ts';
import { readBytes } from '../../../src/core/http/content/file-source.ts';
import { temporaryFolder } from '../../folder.ts';
import { startSite } from '../../harness.ts';
import { httpSource } from '../../core/outbound/sources.ts';
import { startRig, type Handler, type Rig } from './rig.ts';

/** Text that is too long for memory, without repetitions. */
const text = Array.from({ length: 60_000 }, (_, at) => `line ${at} ${(at * 7_919) % 104_729}\n`)
  .join('')
  .padEnd(1_500_000, '.');

const fields = {
  'Cache-Control': 'max-age=60',
  'Content-Type': 'text/plain; charset=utf-8',
  ETag: '"long"',
};

const sends: Handler = (request, response) => {
  response.writeHead(200, { ...fields, 'Content-Length': text.length });
  response.end(request.method === 'HEAD' ? undefined : text);
};

/** A cache that has stored the text. */
async function kept(
  t: TestContext,
  handler = sends,
): Promise<Rig & { readonly answers: CacheStore }> {
  let answers: CacheStore | undefined;
  const rig = await startRig(t, handler, { answersOf: (made) => (answers = made) });
  assert.ok(answers !== undefined);
  assert.equal((await rig.ask()).text, text);
  while (answers.find('http://visible.example/shop/').length === 0) await turn();
  await answers.settled();
  return { ...rig, answers };
}

suite('a long stored response', () => {
  test('is sent from its file, for each request', async (t) => {
    const { ask, reply, requests } = await kept(t);
    const one = await reply();
    assert.equal(one.body.kind, 'file');
    await discard(one);
    const all = await Promise.all(Array.from({ length: 8 }, () => ask()));
    for (const { cache, text: sent } of all)
      assert.deepEqual([cache, sent === text], ['hit', true]);
    assert.equal(requests.length, 1);
  });

  const parts: readonly (readonly [Readonly<Record<string, string>>, number, string])[] = [
    [{ range: 'bytes=1000000-1000009' }, 206, text.slice(1_000_000, 1_000_010)],
    [{ range: 'bytes=-5' }, 206, text.slice(-5)],
    [{ range: 'bytes=0-' }, 206, text],
    [{ range: 'bytes=9-3', 'if-none-match': '"other"' }, 200, text],
    [{ range: 'bytes=9999999-' }, 416, ''],
    [{ 'if-none-match': '"long"' }, 304, ''],
    [{ range: 'bytes=0-4', 'if-range': '"other"' }, 200, text],
  ];
  for (const [asked, status, content] of parts) {
    test(`answers ${JSON.stringify(asked)} with ${status}`, async (t) => {
      const { ask, requests } = await kept(t);
      const seen = await ask({ fields: asked });
      assert.deepEqual([seen.status, seen.text === content, seen.cache], [status, true, 'hit']);
      assert.equal(requests.length, 1);
    });
  }

  test('answers a HEAD, and several parts at once', async (t) => {
    const { ask } = await kept(t);
    const head = await ask({ method: 'HEAD' });
    assert.deepEqual([head.status, head.text], [200, '']);
    assert.equal(head.field('content-length'), String(text.length));
    const several = await ask({ fields: { range: 'bytes=0-50000,1000000-1000005' } });
    assert.match(several.field('content-type') ?? '', /^multipart\/byteranges/);
    assert.ok(several.text.includes(`\r\n\r\n${text.slice(1_000_000, 1_000_006)}\r\n`));
  });

  test('is fresh again after a 304, with the same file', async (t) => {
    const rig = await kept(t, (request, response, count) => {
      if (count === 1) sends(request, response, count);
      else response.writeHead(304, fields).end();
    });
    rig.pass(120);
    const confirmed = await rig.ask();
    assert.deepEqual([confirmed.cache, confirmed.text === text], ['stale', true]);
    await rig.answers.settled();
    const again = await rig.ask();
    assert.deepEqual([again.cache, again.text === text], ['hit', true]);
    assert.equal(rig.requests.length, 2);
  });

  test('is sent once more after a 304 with no-store, then removed', async (t) => {
    const rig = await kept(t, (request, response, count) => {
      if (count === 1) sends(request, response, count);
      else response.writeHead(304, { ETag: fields.ETag, 'Cache-Control': 'no-store' }).end();
    });
    rig.pass(120);
    const confirmed = await rig.ask();
    assert.deepEqual([confirmed.cache, confirmed.text === text], ['stale', true]);
    await rig.answers.settled();
    assert.deepEqual(rig.answers.find('http://visible.example/shop/'), []);
  });

  test('is sent while its source is down', async (t) => {
    const rig = await kept(t);
    rig.pass(120);
    await rig.stopSource();
    assert.equal((await rig.ask()).text, text);
  });
});

/** A server that has fetched and stored the text, and the file of the text. */
async function startKept(t: TestContext): Promise<{
  readonly get: (fields?: Readonly<Record<string, string>>, method?: string) => Promise<Response>;
  readonly file: string;
}> {
  const { origin } = await httpSource(t, (request, response) => {
    sends(request, response, 0);
  });
  const enginedata = { source: `${origin}/*` };
  const { url, folder } = await startSite(t, {
    ini: '[fetch]\nallow_private = 127.0.0.0/8\n',
    rules: [{ path: '/far/*', kind: 'content.fetch', enginedata }],
  });
  const get = (asked = {}, method = 'GET'): Promise<Response> =>
    fetch(`${url}/far/x`, { method, headers: { 'accept-encoding': 'identity', ...asked } });
  assert.equal(await (await get()).text(), text);
  // It is found as soon as it is in the storage.
  while (!isHit(await get({}, 'HEAD'))) await turn();
  const content = join(folder, 'data', 'cache', 'content');
  const found = await readdir(content, { recursive: true, withFileTypes: true });
  const [only, ...others] = found.filter((one) => one.isFile());
  assert.deepEqual(others, []);
  return { get, file: only === undefined ? '' : join(only.parentPath, only.name) };
}

function isHit(response: Response): boolean {
  return response.headers.get('cache-status')?.startsWith('waymark; hit') === true;
}

suite('a server with a long stored response', () => {
  test('compresses it for each client that accepts that', async (t) => {
    const { get } = await startKept(t);
    for (let round = 0; round < 2; round += 1) {
      const response = await get({ 'accept-encoding': 'gzip' });
      assert.equal(response.headers.get('content-encoding'), 'gzip');
      assert.ok(isHit(response));
      assert.equal(await response.text(), text);
    }
  });

  test('breaks it off if the file is corrupt, and requests it again', async (t) => {
    const { get, file } = await startKept(t);
    await writeFile(file, Buffer.alloc(text.length));
    const damaged = await get();
    assert.ok(isHit(damaged));
    await assert.rejects(damaged.text());
    const fresh = await get();
    assert.deepEqual([await fresh.text(), isHit(fresh)], [text, false]);
  });

  test('requests it again if its file is too short or missing', async (t) => {
    for (const damage of [(path: string) => truncate(path, 1_000), rm]) {
      const { get, file } = await startKept(t);
      await damage(file);
      const fresh = await get();
      assert.deepEqual([await fresh.text(), isHit(fresh)], [text, false]);
    }
  });

  test('sends the rest to a client when the file is removed meanwhile', async (t) => {
    const { get, file } = await startKept(t);
    const reading = await get();
    await rm(file);
    assert.equal(await reading.text(), text);
  });
});

test('corrupt content fails with its last piece, and is reported', async (t) => {
  const path = join(await temporaryFolder(t), 'content');
  await writeFile(path, text.replace('line 7 ', 'line 8 '));
  let told = 0;
  const made = contentFile({
    open: () => (existsSync(path) ? openSync(path, 'r') : undefined),
    bytesLength: text.length,
    crc: crc32(text),
    broken: () => {
      told += 1;
    },
  });
  const source = made.open();
  assert.ok(source !== undefined);
  await assert.rejects(readBytes(source, text.length), /not what it was/);
  await source.close();
  assert.equal(told, 1);
  // A part says nothing of the whole.
  const again = made.open();
  const part = Buffer.alloc(10);
  assert.equal(await again?.read(part, 100), 10);
  await again?.close();
  assert.equal(told, 1);
  await truncate(path, 10);
  assert.deepEqual([made.open(), made.isThere()], [undefined, false]);
  await rm(path);
  assert.deepEqual([made.open(), made.isThere()], [undefined, false]);
});
