import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { uuidv7 } from 'uuidv7';
import type { Store } from '../../../src/core/log/store.ts';
import { type JsonObject, canonicalJson } from '../../../src/core/values/json/json.ts';
import {
  type ReadWholeLines,
  importBlockBytes,
  importLineBytesMax,
  readBlocks,
} from '../../../src/modules/transfer/import-blocks.ts';
import { type Refusal, readImportLines } from '../../../src/modules/transfer/import-line.ts';
import { createLineReader } from '../../../src/modules/transfer/import-worker.ts';
import {
  type Imported,
  importBlocks,
  importRecords,
} from '../../../src/modules/transfer/import.ts';
import { commit, inserted, scratchStore } from '../../core/log/scratch.ts';
import { storedRules } from '../../../src/modules/rules/log/family.ts';

const engines = new Set(['html']);
const newSecret = () => 'whsec_c2VjcmV0';
const readHere: ReadWholeLines = (bytes, first) =>
  Promise.resolve(readImportLines(bytes, { first, engines, newId: uuidv7 }));

async function* inChunks(...chunks: readonly (string | Uint8Array)[]) {
  await Promise.resolve();
  for (const chunk of chunks) yield Buffer.from(chunk);
}

async function imported(
  store: Store,
  chunks: AsyncIterable<Uint8Array>,
  read = readHere,
): Promise<Omit<Imported, 'kept' | 'records'> & { readonly read: number }> {
  const sum = { imported: 0, unchanged: 0, read: 0 };
  const refused: Refusal[] = [];
  for await (const step of importBlocks({ store, newSecret }, readBlocks(chunks, read))) {
    sum.imported += step.imported;
    sum.unchanged += step.unchanged;
    sum.read = step.read;
    refused.push(...step.refused);
  }
  return { ...sum, refused };
}

const line = (fields: JsonObject) => `${JSON.stringify({ content: 'x', ...fields })}\n`;
const deep = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;

suite('a line of an import', () => {
  for (const [text, why] of [
    ['nonsense', /^not JSON/],
    ['[]', /^not a JSON object/],
    ['null', /^not a JSON object/],
    ['{"content":"x"}', /^path is missing/],
    ['{"path":"/a","kind":"blog"}', /^kind "blog" is not one of/],
    ['{"path":"/a/../b","content":"x"}', /^path cannot be used/],
    [
      '{"path":"/shop.php?id=3&x=4","content":"x"}',
      /^path ends before the query: write \/shop\.php, .* {"query":{"id":"3"}}\.$/,
    ],
    ['{"a":"svc1.userinterface.edit","v":{}}', /^"svc1.userinterface.edit" cannot be imported/],
    ['{"a":"svc1.userinterface.insert"}', /^v must be an object/],
    ['{"path":"/a","content":"x","vk":5}', /^vk must be a text/],
    ['{"path":"/a","content":"x","vk":""}', /^vk must be a text/],
    [`{"path":"/a","content":"x","vk":"${'v'.repeat(257)}"}`, /^vk must be a text/],
    [`{"path":"/a","content":"x","y":${deep(65)}}`, /^nested too deep/],
    [`{"path":"/a","content":"x","y":[${'0,'.repeat(262_144)}0]}`, /^more than 262144 values/],
    // It is not parsed: it is no JSON either.
    [`{"path":"/a","content":"x","y":${'['.repeat(100_000)}`, /^nested too deep/],
    ['{"path":"/a","content":"\\ud800"}', /^content has a text that is not Unicode/],
    ['{"path":"/a","content":"x","y":{"z":[0,1e1999]}}', /^y\.z\.1 has .* exponent beyond 1000/],
    [`{"path":"/a","content":"x","lang":"en-x-${'abcdefgh-'.repeat(300)}z"}`, /^lang is too long/],
    [Buffer.from([0x7b, 0xff, 0x7d]), /^not UTF-8/],
  ] as const) {
    test(`is refused alone: ${text.toString().slice(0, 60)}`, async (t) => {
      const store = await scratchStore(t);
      const chunks = inChunks(line({ path: '/1' }), text, '\n', line({ path: '/3' }));
      const { refused, ...counts } = await imported(store, chunks);
      assert.deepEqual(counts, { imported: 2, unchanged: 0, read: 3 });
      const [only, ...more] = refused;
      assert.deepEqual([only?.line, more], [2, []]);
      assert.match(only?.why ?? '', why);
    });
  }

  test('is a rule with its vk, or an envelope, and may be empty', async (t) => {
    const store = await scratchStore(t);
    const v = { path: '/b', content: 'x', colour: 'red' };
    const chunks = inChunks(
      `\ufeff${JSON.stringify({ path: '/a', content: 'x', vk: 'one' })}\r\n\r\n  \n`,
      JSON.stringify({ a: 'svc1.userinterface.insert', v, vk: 'two' }),
    );
    assert.deepEqual(await imported(store, chunks), {
      imported: 2,
      unchanged: 0,
      read: 4,
      refused: [],
    });
    assert.equal(store.of(storedRules).exactRules('*', '/a').length, 1);
    const [b] = store.of(storedRules).exactRules('*', '/b');
    assert.deepEqual(store.of(storedRules).rule(b?.id ?? '')?.rule._unknowns_, { colour: 'red' });
    assert.ok(store.vkClaim('import\none') && store.vkClaim('import\ntwo'));
  });

  test('that is too long is refused without being held in memory, and the next one is read', async (t) => {
    const store = await scratchStore(t);
    const piece = Buffer.alloc(importBlockBytes, 'x');
    async function* chunks() {
      yield* inChunks(line({ path: '/1' }), '{"path":"/2","content":"');
      for (let bytes = 0; bytes <= importLineBytesMax; bytes += piece.length) yield piece;
      yield* inChunks(piece, `"}\n${line({ path: '/3' })}`);
    }
    const { refused, ...counts } = await imported(store, chunks());
    assert.deepEqual(counts, { imported: 2, unchanged: 0, read: 3 });
    assert.deepEqual(refused, [{ line: 2, why: `longer than ${importLineBytesMax} bytes.` }]);
  });
});

suite('an import', () => {
  test('can be repeated without an effect', async (t) => {
    const store = await scratchStore(t);
    const text = line({ path: '/a' }) + line({ path: '/b', vk: 'b' }) + line({ path: '/a' });
    assert.deepEqual(await imported(store, inChunks(text)), {
      imported: 2,
      unchanged: 1,
      read: 3,
      refused: [],
    });
    assert.equal((await imported(store, inChunks(text))).unchanged, 3);
    const [a] = store.of(storedRules).exactRules('*', '/a');
    const data = { content: 'edited' };
    const edit = { family: 'userinterface', id: a?.id ?? '', action: 'edit', data } as const;
    await commit(store, edit);
    assert.equal((await imported(store, inChunks(text))).unchanged, 3, 'an edit since then stays');
    assert.equal(store.of(storedRules).rule(a?.id ?? '')?.rule.content, 'edited');
  });

  test('refuses a vk of another request, in the folder or in the import', async (t) => {
    const store = await scratchStore(t);
    await imported(store, inChunks(line({ path: '/a', vk: 'a' })));
    const text = line({ path: '/b', vk: 'a' }) + line({ path: '/c', vk: 'c' });
    const { refused } = await imported(store, inChunks(text, line({ path: '/d', vk: 'c' })));
    assert.deepEqual(refused, [
      { line: 1, why: 'The vk "a" was used before for another request.' },
      { line: 3, why: 'The vk "c" was used before for another request.' },
    ]);
  });

  test('that was reverted can be repeated, except for lines with a chosen vk', async (t) => {
    const store = await scratchStore(t);
    const text = line({ path: '/a' }) + line({ path: '/b', vk: 'b' });
    await imported(store, inChunks(text));
    for (const { id, seq } of ['/a', '/b'].flatMap((path) =>
      store.of(storedRules).exactRules('*', path),
    )) {
      const data = { rows: [seq] };
      await commit(store, { family: 'userinterface', id, action: 'invalidate', data });
    }
    const { imported: again, unchanged } = await imported(store, inChunks(text));
    assert.deepEqual([again, unchanged], [1, 1]);
    assert.equal(store.of(storedRules).exactRules('*', '/a').length, 1);
  });

  test('of lines that Waymark 0.1 has imported changes nothing', async (t) => {
    const store = await scratchStore(t);
    for (const [id, path, vk] of [
      ['a', '/a', undefined],
      ['b', '/b', 'mine'],
    ] as const) {
      const fields = { content: 'x', path };
      const requestHash = hash('sha256', canonicalJson(['insert', fields]));
      const claim = {
        vk: vk === undefined ? `fields:${requestHash}` : `import\n${vk}`,
        requestHash,
      };
      await commit(store, { ...inserted(id, { path }), vk: claim });
    }
    const text = line({ path: '/a' }) + line({ path: '/b', vk: 'mine' }) + line({ path: '/c' });
    const { imported: added, unchanged, refused } = await imported(store, inChunks(text));
    assert.deepEqual([added, unchanged, refused], [1, 2, []]);
  });

  test('is one transaction by "import"', async (t) => {
    const store = await scratchStore(t);
    await imported(store, inChunks(line({ path: '/a' }), line({ path: '/b' })));
    const [one, other] = [store.change(1), store.change(2)];
    assert.deepEqual([one?.by, other?.by, one?.txn], ['import', 'import', other?.txn]);
  });

  test('of all lines or none names every mistake', async (t) => {
    const store = await scratchStore(t);
    const parts = { store, newId: uuidv7, newSecret, engines };
    const text = `${line({ path: '/a', vk: 'a' })}x\n\n${line({ path: '/b' })}{"path":"/c","kind":"blog"}`;
    const message = /^line 2: not JSON\.\nline 5: kind "blog" is not one of/;
    const records = (lines: string, encoding?: BufferEncoding) =>
      importRecords(parts, Buffer.from(lines, encoding));
    await assert.rejects(records(text), { code: 'invalid', message });
    const twice = line({ path: '/a', vk: 'a' }) + line({ path: '/b', vk: 'a' });
    await assert.rejects(records(twice), { message: /^line 2: The vk "a"/ });
    const latin = line({ path: '/a', content: 'café' });
    await assert.rejects(records(latin, 'latin1'), { message: 'line 1: not UTF-8.' });
    assert.equal(store.seq(), 0);
    const { imported: count, kept } = await records(line({ path: '/a', lang: 3 }));
    const [first, ...more] = kept;
    assert.deepEqual([count, first?.line, first?.names, more], [1, 1, ['lang'], []]);
    assert.deepEqual(
      first?.problems.map(({ field, reason }) => [field, reason]),
      [['lang', 'wrong_type']],
    );
    const strict = importRecords(
      { ...parts, isStrict: true },
      Buffer.from(line({ lang: 3, path: '/x' })),
    );
    await assert.rejects(strict, {
      message: /^line 1: lang has to be a BCP 47 .* refuses the write/,
    });
  });

  test('reads the same lines from any pieces of bytes', async (t) => {
    const store = await scratchStore(t);
    let path = 0;
    const piece = fc.constantFrom('ä𝄞', '\n', '\r\n', 'not JSON', '{}', '#');
    const property = fc.asyncProperty(
      fc.array(piece, { maxLength: 20 }),
      fc.array(fc.nat(6), { minLength: 1, maxLength: 9 }),
      async (pieces, sizes) => {
        const text = pieces
          .map((one) => (one === '#' ? line({ path: `/${(path += 1)}` }) : one))
          .join('');
        const bytes = Buffer.from(text);
        const chunks: Buffer[] = [];
        for (let at = 0, next = 0; at < bytes.length; next += 1) {
          const size = 1 + (sizes[next % sizes.length] ?? 0) ** 2;
          chunks.push(bytes.subarray(at, (at += size)));
        }
        const expected = await readHere(bytes, 1);
        const {
          imported: count,
          unchanged,
          read,
          refused,
        } = await imported(store, inChunks(...chunks));
        assert.deepEqual(
          [count + unchanged, read, refused],
          [expected.ready.length, expected.count, expected.refused],
        );
      },
    );
    await fc.assert(property, { numRuns: 100 });
  });
});

test('a long import is read in another thread, with the same result', async (t) => {
  const reader = createLineReader({ engines });
  t.after(() => reader.close());
  const fields = { path: '/a', content: 'ä', colour: { ['__proto__']: [null] } };
  const text = `nonsense\n${line(JSON.parse(JSON.stringify(fields)) as JsonObject)}`;
  const odd = Buffer.from(`${text}{"path":"/b","content":"x","__proto__":{"x":1}}\n`);
  for (const first of [1, 4]) {
    const [there, here] = [await reader.read(odd, first), await readHere(odd, first)];
    const ids = [there, here].flatMap(({ ready }) => ready.map(({ newId }) => newId));
    const ready = there.ready.map((one, at) => ({ ...one, newId: here.ready[at]?.newId }));
    assert.deepEqual({ ...there, ready }, here);
    assert.equal(new Set(ids).size, ids.length);
  }
  const store = await scratchStore(t);
  const many = Array.from({ length: 50_000 }, (_, at) => line({ path: `/${at}` })).join('');
  assert.ok(many.length > importBlockBytes);
  const chunks = inChunks(many, '\n', many);
  const { refused, ...counts } = await imported(store, chunks, reader.read);
  assert.deepEqual(counts, { imported: 50_000, unchanged: 50_000, read: 100_001 });
  assert.deepEqual(refused, []);
  assert.equal(store.change(1)?.txn, store.change(50_000)?.txn);
  const [last] = store.of(storedRules).exactRules('*', '/49999');
  assert.equal(last?.seq, 50_000, 'in the order of the lines');
});
