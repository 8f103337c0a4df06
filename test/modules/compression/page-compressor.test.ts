import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { type Reply, replyField } from '../../../src/core/http/reply.ts';
import type { Coding } from '../../../src/core/http/representation/negotiation.ts';
import type { ClientAddress } from '../../../src/core/values/network/peer.ts';
import type { Fields } from '../../../src/core/http/request.ts';
import {
  type CompressiblePage,
  createPageCompressor,
} from '../../../src/modules/compression/page-compressor.ts';
import { decoded, texts } from './codings.ts';

/** A compressor whose results the test delivers. */
function handMade() {
  const asked: { bytes: Buffer; coding: Coding; end: (coded: Buffer) => void; fail: () => void }[] =
    [];
  const compress = (bytes: Buffer, coding: Coding): Promise<Buffer> => {
    const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
    const fail = () => {
      reject(new Error('no memory'));
    };
    asked.push({ bytes, coding, end: resolve, fail });
    return promise;
  };
  /** Delivers the current result, and waits until the next compression has begun. */
  const settle = async (coded?: Buffer): Promise<void> => {
    const last = asked.at(-1);
    if (coded === undefined) last?.fail();
    else last?.end(coded);
    await new Promise(setImmediate);
  };
  return { asked, compress, settle, codings: () => asked.map(({ coding }) => coding).join(' ') };
}

/** A page whose tag is `"name"`. */
function pageOf(
  name: string,
  { bytes = texts(10_000), contentType = 'text/html', status = 200 } = {},
) {
  return {
    representation: {
      status,
      contentType,
      etag: `"${name}"`,
      lastModifiedMs: undefined,
      fields: ['Vary', 'Accept-Language'],
      bytesLength: bytes.length,
    },
    bytes,
  };
}

const all = 'gzip, deflate, br, zstd';
const small = Buffer.alloc(1_000, 'c');

function asking(compressor: ReturnType<typeof createPageCompressor>, page: CompressiblePage) {
  return (
    acceptEncoding: string | undefined,
    more: Fields = {},
    { method = 'GET', address }: { method?: string; address?: ClientAddress | undefined } = {},
  ): Reply => {
    const fields =
      acceptEncoding === undefined ? more : { 'accept-encoding': acceptEncoding, ...more };
    return compressor.respond(page, { method, fields, ...(address !== undefined && { address }) });
  };
}

const codingOf = (reply: Reply) => replyField(reply, 'content-encoding') ?? 'identity';

suite('a page held in memory', () => {
  test('is compressed after its first request, which does not wait for it', async (t) => {
    const { compress, settle, codings } = handMade();
    const compressor = createPageCompressor({ compress });
    t.after(() => {
      compressor.close();
    });
    const ask = asking(compressor, compressor.prepare(pageOf('a'), { source: 'rule:a' }));
    for (const encoding of [undefined, '', 'identity', 'deflate']) ask(encoding);
    assert.equal(codings(), '');
    assert.equal(codingOf(ask(all)), 'identity');
    assert.equal(codingOf(ask(all)), 'identity');
    assert.equal(codings(), 'zstd');
    await settle(small);
    const reply = ask(all);
    assert.equal(codingOf(reply), 'zstd');
    assert.equal(reply.source, 'rule:a');
    assert.deepEqual(reply.body, { kind: 'bytes', bytes: small });
    // Only requested codings are made; an existing one is sent meanwhile.
    assert.equal(codings(), 'zstd');
    assert.equal(codingOf(ask('br, zstd;q=0.5')), 'zstd');
    assert.equal(codings(), 'zstd br');
    await settle(small);
    assert.equal(codingOf(ask('br, zstd;q=0.5')), 'br');
  });

  test('has Vary in each coding, and its own entity tag for each', async (t) => {
    const compressor = createPageCompressor();
    t.after(() => {
      compressor.close();
    });
    const ask = asking(compressor, compressor.prepare(pageOf('a'), { source: 'rule:a' }));
    const tags = new Set<string | undefined>();
    for (const encoding of ['identity', 'gzip', 'br', 'zstd']) {
      while (codingOf(ask(encoding)) !== encoding) await new Promise(setImmediate);
      for (const method of ['GET', 'HEAD']) {
        const reply = ask(encoding, {}, { method });
        assert.equal(replyField(reply, 'vary'), 'Accept-Language, Accept-Encoding');
        tags.add(replyField(reply, 'etag'));
      }
    }
    assert.equal(tags.size, 4);
  });

  test('stays uncompressed if compression saves nothing', async (t) => {
    const { compress, settle, codings } = handMade();
    const compressor = createPageCompressor({ compress });
    t.after(() => {
      compressor.close();
    });
    for (const page of [
      pageOf('image', { contentType: 'image/png' }),
      pageOf('tiny', { bytes: texts(1_023) }),
      pageOf('empty', { status: 204 }),
    ]) {
      const reply = asking(compressor, compressor.prepare(page, { source: 'x' }))(all);
      assert.equal(replyField(reply, 'vary'), 'Accept-Language');
    }
    assert.equal(codings(), '');
    const ask = asking(compressor, compressor.prepare(pageOf('random'), { source: 'x' }));
    ask(all);
    await settle(texts(9_500));
    ask(all);
    await settle();
    ask(all);
    assert.equal(codings(), 'zstd br gzip');
    await settle(texts(10_500));
    assert.equal(codingOf(ask(all)), 'identity');
    assert.equal(codings(), 'zstd br gzip');
  });

  test('keeps its status, and is sent whole if that is not 200', async (t) => {
    const { compress, settle } = handMade();
    const compressor = createPageCompressor({ compress });
    t.after(() => {
      compressor.close();
    });
    const ask = asking(
      compressor,
      compressor.prepare(pageOf('a', { status: 404 }), { source: 'x' }),
    );
    ask('gzip');
    await settle(small);
    const reply = ask('gzip', { range: 'bytes=0-1', 'if-none-match': '*' });
    assert.deepEqual(
      [reply.status, codingOf(reply), reply.body],
      [404, 'gzip', { kind: 'bytes', bytes: small }],
    );
  });

  test('gets a 304 for the tag of a variant that was evicted', async (t) => {
    const first = createPageCompressor();
    const ask = asking(first, first.prepare(pageOf('a'), { source: 'x' }));
    while (codingOf(ask('br')) !== 'br') await new Promise(setImmediate);
    const tag = replyField(ask('br'), 'etag') ?? '';
    first.close();

    const { compress, codings } = handMade();
    const compressor = createPageCompressor({ compress });
    t.after(() => {
      compressor.close();
    });
    const again = asking(compressor, compressor.prepare(pageOf('a'), { source: 'x' }));
    const cases: readonly (readonly [accept: string, ifNoneMatch: string, status: number])[] = [
      ['br', tag, 304],
      ['gzip, br', `W/"x", W/${tag}`, 304],
      ['gzip', tag, 200],
      ['identity', tag, 200],
      ['br', tag.replace('"a', '"b'), 200],
      ['br', `"x${tag}`, 200],
      ['br', tag.replace(/.{3}$/, '", "'), 200],
      ['br', `${tag.slice(0, -1)}x"`, 200],
    ];
    for (const [accept, ifNoneMatch, status] of cases) {
      for (const method of ['GET', 'HEAD']) {
        const reply = again(accept, { 'if-none-match': ifNoneMatch }, { method });
        assert.equal(reply.status, status, `${method} ${accept} ${ifNoneMatch}`);
        assert.equal(replyField(reply, 'etag'), status === 304 ? tag : '"a"');
        assert.equal(replyField(reply, 'vary'), 'Accept-Language, Accept-Encoding');
      }
    }
    assert.equal(again('br', { 'if-none-match': tag, 'if-match': '"x"' }).status, 412);
    assert.doesNotMatch(codings(), /zstd/);
    const other = asking(
      compressor,
      compressor.prepare(pageOf('a', { status: 404 }), { source: 'x' }),
    );
    assert.equal(replyField(other('br', { 'if-none-match': tag }), 'etag'), '"a"');
  });
});

suite('the cost of compression', () => {
  test('is one page at a time, with a bounded queue', async (t) => {
    const { compress, settle, asked } = handMade();
    const compressor = createPageCompressor({ compress, queueBytesMax: 25_000 });
    t.after(() => {
      compressor.close();
    });
    const pages = ['a', 'b', 'c'].map((name) =>
      asking(compressor, compressor.prepare(pageOf(name), { source: name })),
    );
    const addresses = ['192.0.2.1', '192.0.2.2', '192.0.2.3'] as const;
    for (const [at, ask] of pages.entries()) ask('gzip', {}, { address: addresses[at] });
    assert.equal(asked.length, 1);
    await settle(small);
    assert.equal(asked.length, 2);
    await settle(small);
    // The third one exceeded the queue when it was requested.
    assert.equal(asked.length, 2);
    assert.deepEqual(
      pages.map((ask) => codingOf(ask('gzip'))),
      ['gzip', 'gzip', 'identity'],
    );
    assert.equal(asked.length, 3);
  });

  test('is shared: the pages of one address do not delay those of another', async (t) => {
    const { compress, settle, asked } = handMade();
    const compressor = createPageCompressor({ compress, queueBytesMax: 100_000 });
    t.after(() => {
      compressor.close();
    });
    const pageAsked = (name: string) =>
      asking(compressor, compressor.prepare(pageOf(name), { source: name }));
    for (let at = 0; at < 20; at += 1) pageAsked(`a${at}`)('gzip', {}, { address: '192.0.2.1' });
    const other = pageAsked('b');
    assert.equal(codingOf(other('gzip', {}, { address: '192.0.2.2' })), 'identity');
    await settle(small);
    await settle(small);
    assert.equal(codingOf(other('gzip')), 'gzip');
    assert.ok(asked.length <= 3);
  });

  test('evicts the least used variant, and makes it again on request', async (t) => {
    const { compress, settle, asked } = handMade();
    const compressor = createPageCompressor({ compress, variantsBytesMax: 2 * 3_100 });
    t.after(() => {
      compressor.close();
    });
    const pages = ['a', 'b', 'c'].map((name) =>
      asking(compressor, compressor.prepare(pageOf(name), { source: name })),
    );
    const [a = pages[0], b] = pages;
    for (const ask of [a, b]) {
      ask?.('gzip');
      await settle(small);
    }
    assert.equal(a && codingOf(a('gzip')), 'gzip');
    pages[2]?.('gzip');
    await settle(small);
    assert.deepEqual(
      pages.map((ask) => codingOf(ask('gzip'))),
      ['gzip', 'identity', 'gzip'],
    );
    assert.equal(asked.length, 4);
    await settle(Buffer.alloc(7_000));
    assert.equal(b && codingOf(b('gzip')), 'identity');
    assert.equal(asked.length, 4, 'what is too large to be kept is not tried again');
  });

  test('ends when it is closed', async () => {
    const { compress, settle, asked } = handMade();
    const compressor = createPageCompressor({ compress });
    const pages = ['a', 'b'].map((name) =>
      asking(compressor, compressor.prepare(pageOf(name), { source: name })),
    );
    for (const ask of pages) ask('gzip');
    compressor.close();
    await settle(small);
    assert.deepEqual(
      pages.map((ask) => codingOf(ask('gzip'))),
      ['identity', 'identity'],
    );
    assert.equal(asked.length, 1);
  });
});

test('decompression gives the original bytes', async (t) => {
  const compressor = createPageCompressor();
  t.after(() => {
    compressor.close();
  });
  const sizes = [1_024, 1_025, 65_535, 65_536, 300_000];
  for (let turn = 0; turn < 15; turn += 1) sizes.push(1_024 + Math.floor(Math.random() * 99_000));
  for (const size of sizes) {
    const bytes = texts(size, size);
    const ask = asking(compressor, compressor.prepare(pageOf('a', { bytes }), { source: 'x' }));
    for (const encoding of ['gzip', 'br', 'zstd']) {
      while (codingOf(ask(encoding)) !== encoding) await new Promise(setImmediate);
      const { body } = ask(encoding);
      assert.ok(body.kind === 'bytes' && decoded(body.bytes, encoding).equals(bytes), `${size}`);
      // The variant does not keep the larger buffer of the compressor alive.
      assert.equal(body.bytes.buffer.byteLength, body.bytes.length);
    }
  }
});
