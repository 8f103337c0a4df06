import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { mediaType } from '../../../src/modules/files/media-type.ts';
import { startSite } from '../../harness.ts';
import { ask } from './disk-rig.ts';

const types: readonly (readonly [name: string, type: string])[] = [
  ['a.html', 'text/html; charset=utf-8'],
  ['a.htm', 'text/html; charset=utf-8'],
  ['A.HTML', 'text/html; charset=utf-8'],
  ['a.css', 'text/css; charset=utf-8'],
  ['a.js', 'text/javascript; charset=utf-8'],
  ['a.mjs', 'text/javascript; charset=utf-8'],
  ['a.json', 'application/json; charset=utf-8'],
  ['a.webmanifest', 'application/manifest+json; charset=utf-8'],
  ['a.txt', 'text/plain; charset=utf-8'],
  ['a.md', 'text/markdown; charset=utf-8'],
  ['a.svg', 'image/svg+xml'],
  ['a.png', 'image/png'],
  ['a.jpeg', 'image/jpeg'],
  ['a.webp', 'image/webp'],
  ['a.avif', 'image/avif'],
  ['a.ico', 'image/vnd.microsoft.icon'],
  ['a.woff2', 'font/woff2'],
  ['a.wasm', 'application/wasm'],
  ['a.pdf', 'application/pdf'],
  ['a.mp4', 'video/mp4'],
  ['a.tar.gz', 'application/gzip'],
  ['a.b.html', 'text/html; charset=utf-8'],
  ['apple-app-site-association', 'application/json; charset=utf-8'],
  ['.well-known/apple-app-site-association', 'application/json; charset=utf-8'],
  ['constructor', 'application/octet-stream'],
  ['README', 'application/octet-stream'],
  ['a.', 'application/octet-stream'],
  ['a.unheard-of', 'application/octet-stream'],
  ['a.constructor', 'application/octet-stream'],
  ['.html', 'application/octet-stream'],
  ['html', 'application/octet-stream'],
  ['a.html ', 'application/octet-stream'],
  ['folder.html/README', 'application/octet-stream'],
];

suite('the media type of a file', () => {
  for (const [name, type] of types) {
    test(`${JSON.stringify(name)} is ${type}`, () => {
      assert.equal(mediaType(name), type);
    });
  }

  test('is sent as Content-Type', async (t) => {
    const shown = types.filter(([name]) => !/^\.|\/|^A/.test(name));
    const site = await startSite(t, {
      ini: '[disk.site]\nroot = site\n',
      files: Object.fromEntries(shown.map(([name]) => [`site/${name}`, 'x'])),
    });
    for (const [name, type] of shown) {
      const { fields } = await ask(site.url, `/${encodeURIComponent(name)}`);
      assert.equal(fields['content-type'], type, name);
      assert.equal(fields['x-content-type-options'], 'nosniff', name);
    }
  });
});
