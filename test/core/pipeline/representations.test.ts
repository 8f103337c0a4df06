import assert from 'node:assert/strict';
import { utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, suite, test } from 'node:test';
import { brotliCompressSync, gzipSync, zstdCompressSync } from 'node:zlib';
import {
  type ByCoding,
  type Coding,
  codings,
} from '../../../src/core/http/representation/negotiation.ts';
import { startSite } from '../../harness.ts';
import { askUntilCoded, decoded, texts } from '../../modules/compression/codings.ts';
import { type Seen, ask } from '../../modules/files/disk-rig.ts';

type Form = 'identity' | Coding;
const forms: readonly Form[] = ['identity', ...codings];

const small = texts(20_000);
const large = texts(700_000);
const compressed: ByCoding<(bytes: Buffer) => Buffer> = {
  zstd: (bytes) => zstdCompressSync(bytes),
  br: (bytes) => brotliCompressSync(bytes, { params: { 1: 4 } }),
  gzip: (bytes) => gzipSync(bytes),
};
const date = new Date('2025-01-02T03:04:05Z');

/** A page in all its codings. */
interface Subject {
  readonly name: string;
  readonly path: string;
  readonly content: Buffer;
  readonly isDated: boolean;
}
const subjects: readonly Subject[] = [
  { name: 'a file in memory', path: '/small.txt', content: small, isDated: true },
  { name: 'a file sent from the disk', path: '/large.txt', content: large, isDated: true },
  { name: 'a stored page', path: '/stored', content: small, isDated: false },
];

async function start(t: TestContext): Promise<string> {
  const files: Record<string, Buffer> = {};
  for (const [name, content] of Object.entries({ 'small.txt': small, 'large.txt': large })) {
    files[`site/${name}`] = content;
    files[`site/${name}.zst`] = compressed.zstd(content);
    files[`site/${name}.br`] = compressed.br(content);
    files[`site/${name}.gz`] = compressed.gzip(content);
  }
  const rule = { path: '/stored', kind: 'content', contenttype: 'text/plain; charset=utf-8' };
  const site = await startSite(t, {
    ini: '[disk.site]\nroot = site\ncache_control = no-cache\n',
    files,
    rules: [{ ...rule, content: small.toString() }],
  });
  for (const name of Object.keys(files)) await utimes(join(site.folder, name), date, date);
  return site.url;
}

/** A page in one coding, and in another one that the client may have cached. */
interface Known {
  readonly etag: string;
  readonly otherTag: string;
  readonly length: number;
}

interface Case {
  readonly headers: Readonly<Record<string, string>>;
  readonly status: number;
}

function casesFor({ isDated }: Subject, { etag, otherTag, length }: Known): readonly Case[] {
  const modified = date.toUTCString();
  const conditions: readonly (readonly [Readonly<Record<string, string>>, number])[] = [
    [{}, 200],
    [{ 'if-none-match': etag }, 304],
    [{ 'if-none-match': `W/${etag}` }, 304],
    [{ 'if-none-match': `${otherTag}, ${etag}` }, 304],
    [{ 'if-none-match': '*' }, 304],
    [{ 'if-none-match': otherTag }, 200],
    [{ 'if-none-match': otherTag, 'if-modified-since': modified }, 200],
    [{ 'if-none-match': etag, 'if-modified-since': 'Thu, 01 Jan 1970 00:00:00 GMT' }, 304],
    [{ 'if-modified-since': modified }, isDated ? 304 : 200],
    [{ 'if-match': etag }, 200],
    [{ 'if-match': '*' }, 200],
    [{ 'if-match': otherTag }, 412],
    [{ 'if-match': `W/${etag}` }, 412],
    [{ 'if-match': otherTag, 'if-none-match': etag }, 412],
    [{ 'if-none-match': etag, range: 'bytes=5-9' }, 304],
  ];
  const ranges: readonly (readonly [Readonly<Record<string, string>>, number])[] = [
    [{ range: 'bytes=5-9' }, 206],
    [{ range: 'bytes=-7' }, 206],
    [{ range: 'bytes=0-4,-5' }, 206],
    [{ range: `bytes=${length}-` }, 416],
    [
      { range: `bytes=${Array.from({ length: 17 }, (_, at) => `${3 * at}-${3 * at}`).join()}` },
      200,
    ],
    [{ range: 'bytes=5-9', 'if-range': etag }, 206],
    [{ range: 'bytes=5-9', 'if-range': otherTag }, 200],
    [{ range: 'bytes=5-9', 'if-range': modified }, 200],
  ];
  return [...conditions, ...ranges].map(([headers, status]) => ({ headers, status }));
}

/** Asserts that an answer agrees with the whole representation. */
function assertAnswer(seen: Seen, form: Form, method: string, { known, whole, title }: Expected) {
  const { status, fields, bytes } = seen;
  assert.match(fields.vary ?? '', /^(?:.*, )?Accept-Encoding$/, title);
  if (status < 400) assert.equal(fields.etag, known.etag, title);
  const isMultipart = fields['content-type']?.startsWith('multipart/') === true;
  const saysCoding = (status === 200 || status === 206) && form !== 'identity' && !isMultipart;
  assert.equal(fields['content-encoding'], saysCoding ? form : undefined, title);
  if (method === 'HEAD' || status === 304 || status >= 400) {
    assert.equal(bytes.length, 0, title);
    if (status === 200) assert.equal(fields['content-length'], String(whole.length), title);
    return;
  }
  if (status === 200) assert.ok(bytes.equals(whole), title);
  else if (isMultipart) assertParts(seen, form, whole, title);
  else {
    const [, first, last] = /^bytes (\d+)-(\d+)\//.exec(fields['content-range'] ?? '') ?? [];
    assert.ok(bytes.equals(whole.subarray(Number(first), Number(last) + 1)), title);
    assert.equal(fields['content-range'], `bytes ${first}-${last}/${whole.length}`, title);
  }
}

interface Expected {
  readonly known: Known;
  readonly whole: Buffer;
  readonly title: string;
}

/** Each part of a multipart is a range of the encoded content, and names the coding. */
function assertParts({ bytes }: Seen, form: Form, whole: Buffer, title: string): void {
  const text = bytes.toString('latin1');
  const coded = form === 'identity' ? '' : `Content-Encoding: ${form}\r\n`;
  const length = whole.length;
  for (const [first, last] of [
    [0, 4],
    [length - 5, length - 1],
  ] as const) {
    const piece = whole.subarray(first, last + 1).toString('latin1');
    const part = `\r\n${coded}Content-Range: bytes ${first}-${last}/${length}\r\n\r\n${piece}\r\n--`;
    assert.ok(text.includes(part), title);
  }
}

suite('the four representations of a page agree', () => {
  for (const subject of subjects) {
    test(`${subject.name}: every precondition and range, by GET and HEAD`, async (t) => {
      const url = await start(t);
      const { path, content } = subject;
      const wholes = new Map<Form, Seen>();
      for (const form of forms) {
        const seen = await (form === 'identity' ? ask(url, path) : askUntilCoded(url, path, form));
        assert.ok(decoded(seen.bytes, seen.fields['content-encoding']).equals(content));
        assert.equal(seen.fields['content-type'], 'text/plain; charset=utf-8');
        wholes.set(form, seen);
      }
      const tags = forms.map((form) => wholes.get(form)?.fields.etag ?? '');
      assert.equal(new Set(tags).size, forms.length);
      assert.ok(tags.every((tag) => /^"[\w.-]+"$/.test(tag)));
      for (const [at, form] of forms.entries()) {
        const whole = wholes.get(form)?.bytes ?? Buffer.alloc(0);
        const otherTag = tags[(at + 1) % tags.length] ?? '';
        const known = { etag: tags[at] ?? '', otherTag, length: whole.length };
        for (const { headers, status } of casesFor(subject, known)) {
          for (const method of ['GET', 'HEAD']) {
            const seen = await ask(url, path, {
              method,
              headers: { ...headers, ...(form !== 'identity' && { 'accept-encoding': form }) },
            });
            const title = `${method} ${form} ${JSON.stringify(headers)}`;
            const isRange = status === 206 || status === 416;
            assert.equal(seen.status, method === 'HEAD' && isRange ? 200 : status, title);
            assertAnswer(seen, form, method, { known, whole, title });
          }
        }
      }
    });
  }
});
