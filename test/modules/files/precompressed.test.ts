import assert from 'node:assert/strict';
import { chmod, mkdir, rename, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test, type TestContext } from 'node:test';
import { brotliCompressSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { replyField, type Reply } from '../../../src/core/http/reply.ts';
import type { Fields } from '../../../src/core/http/request.ts';
import { temporaryFolder } from '../../folder.ts';
import { startSite, type TestSite } from '../../harness.ts';
import { decoded, texts } from '../compression/codings.ts';
import { ask, eventually, mountOf, openDescriptors, visitDisk, type Seen } from './disk-rig.ts';

const long = texts(3_000);
const all = 'gzip, deflate, br, zstd';
const old = new Date('2025-01-02T03:04:05.678Z');

interface Started extends TestSite {
  /** Requests a path, by default with the Accept-Encoding of browsers. */
  readonly get: (path: string, acceptEncoding?: string) => Promise<Seen>;
  readonly file: (name: string) => string;
}

/** A site with the same time for all files. */
async function start(
  t: TestContext,
  files: Readonly<Record<string, string | Buffer>>,
  ini = '',
): Promise<Started> {
  const named = Object.entries(files).map(([name, content]) => [`site/${name}`, content] as const);
  const site = await startSite(t, {
    ini: `[disk.site]\nroot = site\n${ini}`,
    files: Object.fromEntries(named),
  });
  for (const [name] of named) await utimes(join(site.folder, name), old, old);
  return {
    ...site,
    get: (path, acceptEncoding = all) =>
      ask(site.url, path, { headers: { 'accept-encoding': acceptEncoding } }),
    file: (name) => join(site.folder, 'site', name),
  };
}

const skip = process.getuid?.() === 0 && 'root may read everything';
const codingOf = ({ fields }: Seen) => fields['content-encoding'] ?? 'identity';
const inAll = {
  'a.js': long,
  'a.js.zst': zstdCompressSync(long),
  'a.js.br': brotliCompressSync(long),
  'a.js.gz': gzipSync(long),
};

suite('a file with precompressed files', () => {
  test('is sent in the coding that Accept-Encoding prefers', async (t) => {
    const { get } = await start(t, inAll);
    const cases: readonly (readonly [acceptEncoding: string, coding: string])[] = [
      [all, 'zstd'],
      ['gzip, deflate, br', 'br'],
      ['gzip, deflate', 'gzip'],
      ['deflate', 'identity'],
      ['gzip;q=1, br;q=0.9, zstd;q=0.1', 'gzip'],
      ['*', 'zstd'],
      ['*, zstd;q=0', 'br'],
      ['identity;q=1, *;q=0', 'identity'],
      ['*;q=0', 'identity'],
      ['identity;q=0', 'identity'],
    ];
    for (const [acceptEncoding, coding] of cases) {
      const seen = await get('/a.js', acceptEncoding);
      assert.equal(seen.status, 200);
      assert.equal(codingOf(seen), coding, acceptEncoding);
      assert.ok(decoded(seen.bytes, seen.fields['content-encoding']).equals(long));
      assert.equal(seen.fields['content-type'], 'text/javascript; charset=utf-8');
      assert.equal(seen.fields.vary, 'Accept-Encoding');
    }
  });

  test('is sent in the best coding that exists', async (t) => {
    const files = { 'a.js': long, 'a.js.gz': gzipSync(long), 'b.js': long };
    const { get } = await start(t, files, 'compress = no\n');
    assert.equal(codingOf(await get('/a.js')), 'gzip');
    const plain = await get('/b.js');
    assert.deepEqual([codingOf(plain), plain.fields.vary], ['identity', undefined]);
  });

  test('leaves the precompressed files reachable under their own names', async (t) => {
    const { get } = await start(t, inAll);
    for (const [name, bytes] of Object.entries(inAll)) {
      const seen = await get(`/${name}`, 'identity');
      assert.ok(seen.bytes.equals(bytes), name);
      assert.equal(codingOf(seen), 'identity', name);
    }
    assert.equal((await get('/a.js.gz')).fields['content-type'], 'application/gzip');
  });

  test('is sent uncompressed if the mount turns precompressed files off', async (t) => {
    const { get } = await start(t, inAll, 'precompressed = no\ncompress = no\n');
    const seen = await get('/a.js');
    assert.deepEqual([codingOf(seen), seen.fields.vary], ['identity', undefined]);
    assert.ok(seen.bytes.equals(long));
  });

  test('may be an index or fallback file, empty, or shorter than the precompressed one', async (t) => {
    const files = {
      'index.html': 'home',
      'index.html.br': brotliCompressSync(Buffer.from('home')),
      'app.html': 'app',
      'app.html.gz': gzipSync(Buffer.from('app')),
      empty: '',
      'empty.gz': gzipSync(Buffer.alloc(0)),
    };
    const { get } = await start(t, files, 'fallback = app.html\n');
    for (const [path, coding, text] of [
      ['/', 'br', 'home'],
      ['/nowhere', 'gzip', 'app'],
      ['/empty', 'gzip', ''],
    ] as const) {
      for (let turn = 0; turn < 2; turn += 1) {
        const seen = await get(path);
        assert.equal(codingOf(seen), coding, path);
        assert.equal(decoded(seen.bytes, coding).toString(), text, path);
      }
    }
  });

  test('has one Vary, whatever fields the mount adds', async (t) => {
    const headers = '[disk.site.headers]\nVary[] = Origin\nVary[] = Cookie\nX-Own = 1\n';
    const site = await start(t, inAll, headers);
    for (const encoding of ['gzip', 'identity']) {
      const answer = await site.raw(
        `GET /a.js HTTP/1.1\r\nHost: a\r\nAccept-Encoding: ${encoding}\r\nConnection: close\r\n\r\n`,
      );
      const varies = answer.split('\r\n\r\n')[0]?.match(/^vary: .*$/gim);
      assert.deepEqual(varies, ['Vary: Accept-Encoding, Origin, Cookie']);
    }
    assert.equal((await site.get('/a.js')).fields['x-own'], '1');
  });
});

suite('a precompressed file is not used', () => {
  const stale = gzipSync(Buffer.from('stale'));
  const cases: readonly (readonly [title: string, sidecarTime: Date, coding: string])[] = [
    ['when it is older', new Date(old.getTime() - 1), 'identity'],
    ['when it is a second older', new Date(old.getTime() - 1_678), 'identity'],
    ['unless its tool knew whole seconds only', new Date(old.getTime() - 678), 'gzip'],
    ['unless it is newer', new Date(old.getTime() + 1), 'gzip'],
    ['unless it is as old', old, 'gzip'],
  ];
  for (const [title, time, coding] of cases) {
    test(title, async (t) => {
      const { get, file } = await start(t, { 'a.txt': 'fresh', 'a.txt.gz': stale });
      await utimes(file('a.txt.gz'), time, time);
      const seen = await get('/a.txt');
      assert.equal(codingOf(seen), coding);
      assert.equal(
        decoded(seen.bytes, seen.fields['content-encoding']).toString(),
        {
          identity: 'fresh',
          gzip: 'stale',
        }[coding],
      );
    });
  }

  test('when it is empty', async (t) => {
    const site = await start(t, { 'a.txt': 'a', 'a.txt.gz': '', b: '', 'b.gz': '' });
    for (const [path, text] of [
      ['/a.txt', 'a'],
      ['/b', ''],
    ] as const) {
      const seen = await site.get(path);
      assert.deepEqual([codingOf(seen), seen.text], ['identity', text]);
    }
    const v = { url: `${site.url}/a.txt` };
    const { data } = await site.call('svc1.userinterface.explain', v);
    assert.deepEqual(data.notes, ['a.txt.gz is not used: it is empty.']);
  });

  test('when it is a folder', async (t) => {
    const { get, file } = await start(t, { 'a.txt': 'a' });
    await mkdir(file('a.txt.gz'));
    assert.equal((await get('/a.txt')).text, 'a');
  });

  test('when the server is not allowed to read it, or its folder', { skip }, async (t) => {
    const plain = texts(300_000);
    const { get, file } = await start(t, {
      'small.txt': 'a',
      'small.txt.br': 'unreadable',
      'large.txt': plain,
      'large.txt.br': plain,
      'linked.txt': 'b',
    });
    await chmod(file('small.txt.br'), 0o000);
    await chmod(file('large.txt.br'), 0o000);
    await mkdir(file('closed'));
    await symlink('closed/x.br', file('linked.txt.br'));
    await chmod(file('closed'), 0o000);
    assert.equal((await get('/small.txt')).text, 'a');
    assert.ok((await get('/large.txt')).bytes.equals(plain));
    assert.equal((await get('/linked.txt')).text, 'b');
    await chmod(file('closed'), 0o700);
  });

  test('when it is a symlink out of the mount, or symlinks are denied', async (t) => {
    const secret = gzipSync(Buffer.from('secret'));
    for (const [symlinks, outside, inside] of [
      ['within', 'identity', 'gzip'],
      ['deny', 'identity', 'identity'],
      ['follow', 'gzip', 'gzip'],
    ] as const) {
      const { get, file, folder } = await start(
        t,
        { 'a.txt': 'a', 'b.txt': 'b', 'b.gz': gzipSync(Buffer.from('b')) },
        `symlinks = ${symlinks}\n`,
      );
      await writeFile(join(folder, 'secret.gz'), secret);
      await symlink('../secret.gz', file('a.txt.gz'));
      await utimes(file('b.gz'), new Date(), new Date());
      await symlink('b.gz', file('b.txt.gz'));
      assert.equal(codingOf(await get('/a.txt')), outside, symlinks);
      assert.equal(codingOf(await get('/b.txt')), inside, symlinks);
    }
  });

  test('when the original is hidden or missing', async (t) => {
    const coded = gzipSync(Buffer.from('x'));
    const { get } = await start(t, { '.env': 'x', '.env.gz': coded, 'gone.txt.gz': coded });
    for (const path of ['/.env', '/.env.gz', '/gone.txt']) {
      assert.equal((await get(path)).status, 404, path);
    }
    assert.equal((await get('/gone.txt.gz')).status, 200);
  });

  test('when its name would be too long', async (t) => {
    const name = 'x'.repeat(254);
    const { get } = await start(t, { [name]: 'x' });
    assert.equal((await get(`/${name}`)).text, 'x');
  });
});

suite('precompressed files that appear, disappear and change', () => {
  test('are noticed within a second, as the original is', async (t) => {
    const { get, file } = await start(t, { 'a.txt': 'one' });
    assert.equal(codingOf(await get('/a.txt')), 'identity');
    await writeFile(file('a.txt.gz'), gzipSync(Buffer.from('one')));
    const until = (isWanted: (seen: Seen) => boolean) => eventually(() => get('/a.txt'), isWanted);
    const first = await until((seen) => codingOf(seen) === 'gzip');
    await writeFile(file('a.txt.gz'), gzipSync(Buffer.from('two')));
    const second = await until(({ fields }) => fields.etag !== first.fields.etag);
    assert.equal(decoded(second.bytes, 'gzip').toString(), 'two');
    // The original is newer now, so the precompressed file is out of date.
    await writeFile(file('a.txt'), 'three');
    assert.equal((await until((seen) => codingOf(seen) === 'identity')).text, 'three');
    await rm(file('a.txt.gz'));
    await rm(file('a.txt'));
    await until(({ status }) => status === 404);
  });

  test('no answer mixes two contents, and no entity tag stands for two', async (t) => {
    const root = await temporaryFolder(t);
    const file = join(root, 'a.txt');
    // A check of the disk is valid for less than a second, and each request is a second later.
    let nowMs = Date.now();
    const get = visitDisk(t, [mountOf(root, { precompressed: true })], () => (nowMs += 1_000));
    const known = new Map<string, Buffer>();
    for (const length of [2_000, 600_000]) {
      const states = [1, 2, 3].map((seed) => texts(length, seed));
      const contents = states.map((state) => [state, gzipSync(state)] as const);
      await writeFile(file, states[0] ?? '');
      const replace = async (turn: number): Promise<void> => {
        const [plain = '', coded = ''] = contents[turn % contents.length] ?? [];
        await writeFile(`${file}.new`, plain);
        await rename(`${file}.new`, file);
        await writeFile(`${file}.new`, coded);
        await rename(`${file}.new`, `${file}.gz`);
      };
      const seen = new Set<string>();
      const look = async (fields: Fields): Promise<void> => {
        const reply = await get('/a.txt', fields);
        assert.ok(reply?.status === 200);
        const bytes = await contentOf(reply);
        const coding = replyField(reply, 'content-encoding');
        const content = decoded(bytes, coding);
        assert.ok(states.some((state) => state.equals(content)));
        const tag = replyField(reply, 'etag') ?? '';
        assert.ok(known.get(tag)?.equals(bytes) ?? true, 'one tag for two contents');
        known.set(tag, bytes);
        seen.add(`${coding ?? ''} ${tag}`);
      };
      const lookTwice = async (): Promise<void> => {
        await look({ 'accept-encoding': 'gzip' });
        await look({});
      };
      for (let turn = 0; turn < 30; turn += 1) {
        await Promise.all([replace(turn), lookTwice(), lookTwice()]);
        await lookTwice();
      }
      assert.ok(seen.size >= 60, `${seen.size} states`);
    }
    assert.equal(openDescriptors(file), 0);
  });
});

/** All bytes of a complete answer. */
async function contentOf({ body }: Reply): Promise<Buffer> {
  if (body.kind === 'bytes') return body.bytes;
  assert.ok(body.kind === 'file');
  const bytes = Buffer.alloc(body.bytesLength);
  let filled = 0;
  while (filled < bytes.length) {
    const count = await body.file.read(bytes.subarray(filled), filled);
    assert.ok(count > 0);
    filled += count;
  }
  await body.file.close();
  return bytes;
}

suite('small and large files', () => {
  const cases = [
    ['a large file with a small precompressed one', Buffer.alloc(600_000, 'lorem ipsum '), 600_000],
    ['a large file with a large precompressed one', texts(600_000), 600_000],
  ] as const;
  for (const [title, content] of cases) {
    test(`${title} is sent whole and in parts`, async (t) => {
      const coded = gzipSync(content);
      const { get, file, url } = await start(t, { 'a.txt': content, 'a.txt.gz': coded });
      for (let turn = 0; turn < 2; turn += 1) {
        assert.ok((await get('/a.txt', 'gzip')).bytes.equals(coded));
        const plain = await get('/a.txt', 'identity');
        assert.ok(plain.bytes.equals(content));
        assert.equal(plain.fields.vary, 'Accept-Encoding');
      }
      const part = await ask(url, '/a.txt', {
        headers: { range: 'bytes=10-19', 'accept-encoding': 'gzip' },
      });
      assert.ok(part.bytes.equals(coded.subarray(10, 20)));
      await rm(file('a.txt.gz'));
      const later = await eventually(
        () => get('/a.txt', 'gzip'),
        (seen) => codingOf(seen) === 'identity',
      );
      assert.ok(later.bytes.equals(content));
      await eventually(
        () => openDescriptors(file('a.txt')),
        (count) => count === 0,
      );
    });
  }

  test('a small file with a large precompressed one', async (t) => {
    const content = texts(400_000);
    const coded = gzipSync(content);
    assert.ok(coded.length > 262_144);
    const { get } = await start(t, { 'a.txt': 'small', 'a.txt.gz': coded });
    assert.ok((await get('/a.txt', 'gzip')).bytes.equals(coded));
    assert.ok((await get('/a.txt', 'gzip')).bytes.equals(coded));
    assert.equal((await get('/a.txt', 'identity')).text, 'small');
  });
});

test('explain names the precompressed files that are sent, and why others are not', async (t) => {
  const site = await start(t, {
    'a.txt': 'a',
    'a.txt.br': brotliCompressSync(Buffer.from('a')),
    'a.txt.gz': gzipSync(Buffer.from('a')),
    'b.txt': 'b',
  });
  const { url } = site;
  await utimes(site.file('a.txt.gz'), 1, 1);
  const notes = async (path: string): Promise<unknown> =>
    (await site.call('svc1.userinterface.explain', { url: url + path })).data.notes;
  const expected = [
    'Clients that accept br get a.txt.br.',
    'a.txt.gz is not used: it is older than the file itself.',
  ];
  assert.deepEqual(await notes('/a.txt'), expected);
  await ask(url, '/a.txt');
  assert.deepEqual(await notes('/a.txt'), expected);
  assert.deepEqual(await notes('/b.txt'), []);
});

test('explain does not claim that an unreadable file is sent', { skip }, async (t) => {
  const site = await start(t, { 'a.txt': 'a', 'a.txt.br': 'b', 'a.txt.gz': 'c' });
  await chmod(site.file('a.txt.gz'), 0o000);
  const v = { url: `${site.url}/a.txt` };
  assert.deepEqual((await site.call('svc1.userinterface.explain', v)).data.notes, [
    'Clients that accept br get a.txt.br.',
    'a.txt.gz is not used: the server is not allowed to read it.',
  ]);
});
