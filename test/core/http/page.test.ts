import { Ajv2020 } from 'ajv/dist/2020.js';
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { suite, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { builtInEngines } from '../../../src/modules/rules/rule.ts';
import type { JsonObject } from '../../../src/core/values/json/json.ts';
import { genericPage } from '../../../src/core/http/content/page.ts';
import { loadPublicFiles } from '../../../src/modules/console/public-files.ts';

const folder = fileURLToPath(new URL('../../../public/', import.meta.url));
const files = await loadPublicFiles(folder);

suite('the built-in generic page', () => {
  const cases = [
    { base: '', src: '/svc1/engine.js' },
    { base: '/shop', src: '/shop/svc1/engine.js' },
  ];
  for (const { base, src } of cases) {
    test(`loads the engine from ${src}`, () => {
      const { bytes, contentType } = files.page({ base, nonce: 'r4nd0m' });
      assert.match(bytes.toString(), new RegExp(`<script defer src="${src}" nonce="r4nd0m">`));
      assert.equal(contentType, 'text/html; charset=utf-8');
    });
  }

  test('has no placeholder left, and a title, language and noscript text', () => {
    const text = files.page({ base: '', nonce: '' }).bytes.toString();
    assert.doesNotMatch(text, /\{\{|\}\}/);
    for (const part of [
      '<html lang="en">',
      'name="viewport"',
      '<title',
      '<noscript>',
      'id="waymark"',
    ]) {
      assert.ok(text.includes(part), part);
    }
  });

  test('keeps base and nonce inside their attributes, whatever they contain', () => {
    const nonce = `"><script>alert('$&')</script>`;
    const text = genericPage('<a nonce="{{nonce}}">{{base}}', { base: '/<i>$1&', nonce }).bytes;
    assert.equal(
      text.toString(),
      '<a nonce="&quot;&gt;&lt;script&gt;alert(&#39;$&amp;&#39;)&lt;/script&gt;">/&lt;i&gt;$1&amp;',
    );
  });

  test('has a strong entity tag that depends on its text', () => {
    const { etag } = files.page({ base: '', nonce: '' });
    assert.match(etag, /^"[\w-]{27}"$/);
    assert.equal(files.page({ base: '', nonce: '' }).etag, etag);
    assert.notEqual(files.page({ base: '/shop', nonce: '' }).etag, etag);
  });
});

suite('the public files', () => {
  test('contain the loader as it is on disk, at most 6 KB when compressed', async () => {
    const { bytes, contentType } = files.file('/engine.js') ?? assert.fail();
    assert.deepEqual(bytes, await readFile(`${folder}engine.js`));
    assert.equal(contentType, 'text/javascript; charset=utf-8');
    assert.ok(gzipSync(bytes).length < 6 * 1024);
  });

  for (const name of builtInEngines) {
    test(`contain the module, the documentation and the schema of the engine ${name}`, () => {
      assert.equal(
        files.file(`/engines/${name}.js`)?.contentType,
        'text/javascript; charset=utf-8',
      );
      const { page, schema } = files.engineReference(name) ?? {};
      assert.equal(page?.contentType, 'text/html; charset=utf-8');
      assert.match(page.bytes.toString(), new RegExp(`<h1>${name}</h1>`));
      assert.equal(schema?.contentType, 'application/schema+json');
      assert.match(files.file('/engine.js')?.bytes.toString() ?? '', new RegExp(`'${name}'`));
    });
  }

  test('refer only to files that exist', () => {
    const paths = [
      '/engine.js',
      '/live.js',
      ...builtInEngines.map((name) => `/engines/${name}.js`),
    ];
    for (const path of paths) {
      const text = files.file(path)?.bytes.toString() ?? assert.fail(path);
      for (const [, to = ''] of text.matchAll(/ from '(\.[^']*)'/g)) {
        const { pathname } = new URL(to, `http://x${path}`);
        assert.ok(files.file(pathname), `${path} imports ${pathname}`);
        if (!paths.includes(pathname) && pathname !== '/engines/liquid.js') paths.push(pathname);
      }
    }
    assert.ok(paths.includes('/engines/form/words.js'));
  });

  const strangers = [
    '',
    'htm',
    'HTML',
    'html.html',
    '../page',
    '..%2fpage',
    '/etc/passwd',
    '__proto__',
    'html.js',
    'clean',
  ];
  for (const name of strangers) {
    test(`have no engine ${JSON.stringify(name)}`, () => {
      assert.equal(files.engineReference(name), undefined);
      assert.equal(files.file(`/engines/${name}`) === undefined, name !== 'html.js');
    });
  }

  test('cannot be loaded from another folder', async () => {
    await assert.rejects(loadPublicFiles(`${folder}engines`), { code: 'ENOENT' });
  });
});

interface Schema {
  readonly examples: readonly JsonObject[];
}

function schemaOf(engine: string): Schema {
  return JSON.parse(files.engineReference(engine)?.schema.bytes.toString() ?? '') as Schema;
}

test('the schema of every engine is strict, and accepts its own examples', () => {
  for (const name of builtInEngines) {
    const schema = schemaOf(name);
    const validate = new Ajv2020({ strict: true }).compile(schema);
    assert.ok(schema.examples.length > 0);
    for (const example of schema.examples) assert.ok(validate(example), name);
  }
});

suite('the schema of the engine html', () => {
  const schema = schemaOf('html');
  const validate = new Ajv2020({ strict: true }).compile(schema);
  const cases: readonly (readonly [title: string, enginedata: unknown, valid: boolean])[] = [
    ['its own example', schema.examples[0], true],
    ['an empty object', {}, true],
    ['names of its own', { lamp: { watts: 6 } }, true],
    ['scripts that are not a list', { scripts: 'alert(1)' }, false],
    ['a script that is not text', { scripts: [1] }, false],
    ['html that is not text', { html: 1 }, false],
    ['a page on another site', { page: 'https://example.org/' }, false],
    ['a text', 'html', false],
  ];
  for (const [title, enginedata, valid] of cases) {
    test(`${valid ? 'accepts' : 'refuses'} ${title}`, () => {
      assert.equal(validate(enginedata), valid);
    });
  }
});
