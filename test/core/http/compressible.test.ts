import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isCompressible } from '../../../src/core/http/representation/mediatype.ts';

test('text is compressible; compressed formats are not', () => {
  const yes = [
    ...['text/html', 'text/html; charset=utf-8', 'TEXT/CSS', 'text/plain ;charset=x', 'text/x-any'],
    ...['text/javascript', 'application/javascript', 'application/json', 'application/wasm'],
    ...['application/ld+json', 'application/schema+json', 'image/svg+xml', 'application/atom+xml'],
    ...['application/problem+json; charset=utf-8', 'font/ttf', 'image/x-icon', 'application/xml'],
  ];
  const no = [
    ...[
      'image/png',
      'image/jpeg',
      'video/mp4',
      'application/zip',
      'application/gzip',
      'font/woff2',
    ],
    ...['application/octet-stream', 'application/pdf', 'text/event-stream', 'multipart/byteranges'],
    ...['TEXT/EVENT-STREAM; charset=utf-8', '', 'html', 'image/png; note=text/html', 'a/b+jsonx'],
  ];
  for (const type of yes) assert.ok(isCompressible(type), type);
  for (const type of no) assert.ok(!isCompressible(type), type);
  assert.ok(!isCompressible(undefined));
});
