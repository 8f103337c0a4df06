import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { Fields } from '../../../../src/core/http/request.ts';
import { replyField, type Reply } from '../../../../src/core/http/reply.ts';
import type { FoundRule } from '../../../../src/modules/rules/rule.ts';
import type { Rule } from '../../../../src/modules/rules/rule.ts';
import { createCompressors } from '../../../../src/modules/compression/compressors.ts';
import { createStoredPages } from '../../../../src/modules/rules/pages/stored-pages.ts';
import { startSite, type TestSite } from '../../../harness.ts';
import { askUntilCoded, decoded, texts } from '../../compression/codings.ts';
import { ask } from '../../files/disk-rig.ts';

const text = texts(5_000).toString();
const page = { kind: 'content', contenttype: 'text/plain; charset=utf-8' };

/** The Vary fields of an answer, as sent. */
async function varyLines(site: TestSite, head: string): Promise<readonly string[] | null> {
  const answer = await site.raw(`${head}\r\nHost: a\r\nConnection: close\r\n\r\n`);
  return (answer.split('\r\n\r\n')[0] ?? '').match(/^vary:.*$/gim);
}

suite('a stored page', () => {
  test('is compressed, and after an edit with its new content', async (t) => {
    const site = await startSite(t, { rules: [{ ...page, path: '/a', content: text }] });
    const first = await askUntilCoded(site.url, '/a', 'br');
    assert.equal(decoded(first.bytes, 'br').toString(), text);
    assert.ok(first.bytes.length < 4_500);
    const { data } = await site.call('svc1.userinterface.list', { path: '/a' });
    const changed = text.toLowerCase();
    await site.call('svc1.userinterface.edit', { id: data.rows[0].id, content: changed });
    const headers = { 'accept-encoding': 'br', 'if-none-match': first.fields.etag };
    const edited = await ask(site.url, '/a', { headers });
    assert.equal(edited.status, 200);
    assert.equal(decoded(edited.bytes, edited.fields['content-encoding']).toString(), changed);
    const second = await askUntilCoded(site.url, '/a', 'br');
    assert.equal(decoded(second.bytes, 'br').toString(), changed);
  });

  for (const content of ['small', { base64: 'c21hbGw=' }]) {
    test(`of ${JSON.stringify(content)} does not hold a larger buffer in memory`, () => {
      const pages = createStoredPages(createCompressors());
      const rule = { id: 'a', origin: '*', path: '/a', kind: 'content', content } as const;
      const found: FoundRule = {
        stored: { rule, seq: 1, insertedSeq: 1 },
        capture: undefined,
        variesByLanguage: false,
      };
      const fields = Object.create(null) as Fields;
      const { body } = pages.respond(found, { method: 'GET', fields, address: '192.0.2.1' });
      if (body.kind !== 'bytes') assert.fail(body.kind);
      assert.deepEqual([body.bytes.toString(), body.bytes.buffer.byteLength], ['small', 5]);
    });
  }

  test('is sent again after the restore of a backup, though its seq is the same', () => {
    const written = { id: 'a', origin: '*', path: '/a', kind: 'content', content: 'new' } as const;
    const sent = (rule: Rule, known: Readonly<Record<string, string>>): Reply => {
      const stored = { rule, seq: 7, insertedSeq: 1 };
      const found = { stored, capture: undefined, variesByLanguage: false };
      const pages = createStoredPages(createCompressors());
      const fields = Object.assign(Object.create(null) as Record<string, string>, known);
      return pages.respond(found, { method: 'GET', fields, address: '192.0.2.1' });
    };
    const etag = replyField(sent(written, {}), 'etag') ?? '';
    assert.equal(sent(written, { 'if-none-match': etag }).status, 304);
    for (const other of [{ content: 'lost' }, { contenttype: 'text/plain' }, { lang: 'de' }]) {
      assert.equal(sent({ ...written, ...other }, { 'if-none-match': etag }).status, 200);
    }
  });

  test('of text is sent as UTF-8; one of bytes keeps its content type', async (t) => {
    const latin1 = { base64: Buffer.from('é', 'latin1').toString('base64') };
    const site = await startSite(t, {
      rules: [
        { path: '/plain', kind: 'content', contenttype: 'text/plain', content: 'é' },
        { path: '/old', kind: 'content', contenttype: 'text/plain; charset=latin1', content: 'é' },
        { path: '/bytes', contenttype: 'text/plain; charset=latin1', content: latin1 },
        {
          path: '/crumb',
          kind: 'resolve',
          contenttype: 'text/plain; charset=latin1',
          enginedata: { html: 'é' },
        },
      ],
    });
    for (const path of ['/plain', '/old', '/bytes', '/crumb']) {
      const { bytes, fields } = await ask(site.url, path);
      const [, charset = ''] = /charset=(.*)$/.exec(fields['content-type'] ?? '') ?? [];
      assert.equal(new TextDecoder(charset).decode(bytes), 'é', path);
    }
  });

  test('has one Vary field for language and coding', async (t) => {
    const rules = ['de', 'en'].map((lang) => ({ ...page, path: '/a', lang, content: text }));
    const site = await startSite(t, { rules });
    const vary = ['Vary: Accept-Language, Accept-Encoding'];
    const { fields } = await askUntilCoded(site.url, '/a', 'gzip');
    for (const more of [
      '',
      '\r\nAccept-Encoding: gzip',
      '\r\nAccept-Encoding: gzip\r\nRange: bytes=0-1',
      `\r\nAccept-Encoding: gzip\r\nIf-None-Match: ${fields.etag}`,
    ]) {
      for (const method of ['GET', 'HEAD']) {
        assert.deepEqual(await varyLines(site, `${method} /a HTTP/1.1${more}`), vary);
      }
    }
  });

  test('that is short or not text has no Vary: Accept-Encoding', async (t) => {
    const site = await startSite(t, {
      rules: [
        { ...page, path: '/image', contenttype: 'image/png', content: text },
        { ...page, path: '/short', content: 'short' },
      ],
    });
    for (const path of ['/image', '/short']) {
      assert.equal(await varyLines(site, `GET ${path} HTTP/1.1\r\nAccept-Encoding: gzip`), null);
    }
  });

  test('is returned uncompressed by get_content', async (t) => {
    const site = await startSite(t, { rules: [{ ...page, path: '/a', content: text }] });
    await askUntilCoded(site.url, '/a', 'gzip');
    const socket = await site.socket(site.adminKey);
    const { data } = await socket.call('svc1.userinterface.get_content', {
      origin: site.url,
      path: '/a',
      headers: { 'Accept-Encoding': 'gzip' },
    });
    assert.equal(data.content, text);
  });
});

suite("Waymark's own files", () => {
  test('are compressed: scripts, documents and the generic page', async (t) => {
    const rule = { kind: 'content', engine: 'html', enginedata: { page: '/page' } };
    const site = await startSite(t, {
      rules: [
        { ...page, path: '/page', content: text },
        { ...rule, path: '/app' },
        { ...rule, path: '/gone', httpresponse: 410 },
      ],
    });
    for (const [path, status] of [
      ['/svc1/engine.js', 200],
      ['/svc1/openapi.json', 200],
      ['/svc1/engines/html', 200],
      ['/app', 200],
      ['/gone', 410],
    ] as const) {
      const plain = await ask(site.url, path);
      assert.match(plain.fields.vary ?? '', /^(?:Accept, )?Accept-Encoding$/, path);
      const coded = await askUntilCoded(site.url, path, 'zstd');
      assert.equal(coded.status, status);
      assert.ok(decoded(coded.bytes, 'zstd').equals(plain.bytes), path);
      assert.notEqual(coded.fields.etag, plain.fields.etag);
      assert.equal(coded.fields.vary, plain.fields.vary);
      const headers = { 'accept-encoding': 'zstd', 'if-none-match': coded.fields.etag };
      const again = await ask(site.url, path, { headers });
      assert.equal(again.status, status === 200 ? 304 : status, path);
    }
  });

  test('a generic page without content has no Content-Encoding', async (t) => {
    const rule = { kind: 'content', engine: 'html', enginedata: { page: '/page' } };
    const site = await startSite(t, {
      rules: [
        { ...page, path: '/page', content: text },
        { ...rule, path: '/empty', httpresponse: 205 },
      ],
    });
    await askUntilCoded(site.url, '/page', 'gzip');
    const { status, fields } = await ask(site.url, '/empty', {
      headers: { 'accept-encoding': 'gzip' },
    });
    assert.deepEqual(
      [status, fields['content-encoding'], fields['content-length']],
      [205, undefined, '0'],
    );
  });
});
