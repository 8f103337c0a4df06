import { Ajv2020 } from 'ajv/dist/2020.js';
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { readFile } from 'node:fs/promises';
import { suite, test } from 'node:test';
import type { JsonObject } from '../../../../src/core/values/json/json.ts';
import type { RuleKind } from '../../../../src/modules/rules/rule.ts';
import {
  enginedataProblems,
  type EnginedataPlacing,
} from '../../../../src/modules/rules/operations/enginedata.ts';

/** Whether all members of an enginedata are valid, with unknown ones. */
function validEnginedata(value: JsonObject, placing: EnginedataPlacing): boolean {
  return !enginedataProblems(value, placing).some(
    ({ waits, problem: { field, reason } }) =>
      waits !== undefined || (reason === 'missing' && /^enginedata\.\w+$/.test(field)),
  );
}

type Cases = readonly (readonly [title: string, enginedata: JsonObject, valid: boolean])[];

function check(kind: RuleKind, engine: string | undefined, cases: Cases): void {
  for (const [title, enginedata, valid] of cases) {
    test(`${valid ? 'takes' : 'refuses'} ${title}`, () => {
      assert.equal(validEnginedata(enginedata, { kind, engine }), valid);
    });
  }
}

const own = { lamp: { sku: 'TRN-1', watts: [6, null] }, '': 1, constructor: 1 };

suite('enginedata of the engine html', async () => {
  const file = new URL('../../../../public/engines/html.schema.json', import.meta.url);
  const schema = JSON.parse(await readFile(file, 'utf8')) as { examples: JsonObject[] };
  const documented = new Ajv2020({ strict: true }).compile(schema);

  const cases: Cases = [
    ...schema.examples.map((example) => ['the documented example', example, true] as const),
    ['nothing', {}, true],
    ['all that it knows', { html: '', css: '', scripts: [], title: '', page: '/' }, true],
    ['members of its own', own, true],
    ['html that is no text', { html: ['<p>'] }, false],
    ['html that is null', { html: null }, false],
    ['css that is no text', { css: {} }, false],
    ['scripts that are no list', { scripts: '/a.js' }, false],
    ['a script that is no text', { scripts: ['/a.js', 1] }, false],
    ['256 scripts', { scripts: Array.from({ length: 256 }, () => '/a.js') }, true],
    ['257 scripts', { scripts: Array.from({ length: 257 }, () => '/a.js') }, false],
    ['the same script twice', { scripts: ['a', 'a'] }, true],
    ['a title that is no text', { title: 1 }, false],
    ['a page on this site', { page: '/frame.html' }, true],
    ['a page by its URL', { page: 'https://other.example/' }, false],
    ['a page by a relative path', { page: 'frame.html' }, false],
    ['an empty page', { page: '' }, false],
    ['a page that is no text', { page: 1 }, false],
    ['a page after a line break', { page: '\n/a' }, false],
  ];
  for (const kind of ['content', 'edit-record', 'insert-record', 'delete-record'] as const) {
    test(`has one schema in the server and its documentation, for ${kind}`, () => {
      for (const [title, enginedata, valid] of cases) {
        assert.equal(validEnginedata(enginedata, { kind, engine: 'html' }), valid, title);
        assert.equal(documented(enginedata), valid, `${title}, as documented`);
      }
    });
  }

  test('has one schema in the server and its documentation, with any content', () => {
    const values = fc.oneof(
      fc.jsonValue({ maxDepth: 2 }),
      fc.array(fc.oneof(fc.string(), fc.integer()), { maxLength: 3 }),
      fc.webPath(),
    );
    const names = fc.constantFrom('html', 'css', 'scripts', 'title', 'page', 'other', '__proto__');
    fc.assert(
      fc.property(fc.array(fc.tuple(names, values), { maxLength: 4 }), (entries) => {
        const enginedata = Object.fromEntries(entries) as JsonObject;
        const placing = { kind: 'content', engine: 'html' } as const;
        assert.equal(validEnginedata(enginedata, placing), documented(enginedata));
      }),
      { numRuns: 2_000 },
    );
  });
});

suite('enginedata of the engine template', () => {
  const template = '<p>{{ data.name }}</p>';
  check('content', 'template', [
    ['a template', { template }, true],
    ['all that it knows', { template, data: own, partials: { a: '' }, title: '', html: '' }, true],
    ['members of its own', { template, ...own }, true],
    ['what is shown instead, and no template', { html: '<p>' }, true],
    ['neither', { data: {} }, false],
    ['a template that is no text', { template: ['a'] }, false],
    ['data that is no object', { template, data: [] }, false],
    ['a partial that is no text', { template, partials: { a: 1 } }, false],
    ['a page on another site', { template, page: '//other.example/' }, true],
    ['a page by its URL', { template, page: 'https://other.example/' }, false],
  ]);
});

suite('enginedata of the engine form', () => {
  const a = 'letters.insert';
  const to = (url: string) => ({ submit: { url, a } });
  const urls: readonly (readonly [url: string, valid: boolean])[] = [
    ['https://data.example/letters?x=1', true],
    ['http://localhost:8082', true],
    ['wss://data.example/ws', true],
    ['ws://[::1]:8082/', true],
    ['/data/letters', true],
    ['//data.example/', false],
    ['data/letters', false],
    ['javascript:alert(1)//', false],
    ['data:application/json,{}', false],
    ['file:///etc/passwd', false],
    ['https://', false],
    [' https://data.example/', false],
    ['https://data.example/\n', false],
    ['https://data.example/\\evil', false],
    ['/\\evil.example/', false],
    ['https://user@data.example/', false],
    ['', false],
  ];
  for (const kind of ['insert-record', 'edit-record', 'delete-record'] as const) {
    check(kind, 'form', [
      ...urls.map(
        ([url, valid]) => [`a record to ${JSON.stringify(url)}`, to(url), valid] as const,
      ),
      ['what is shown instead', { html: '<p>' }, true],
      ['no data host: the record is stored here', { fields: [] }, true],
      ['no operation', { submit: { url: '/data' } }, false],
      ['no address', { submit: { a } }, false],
      ['members of its own', { ...to('/data'), ...own }, true],
      ['fields that are no list', { ...to('/data'), fields: 'name' }, false],
      ['words that are no text', { ...to('/data'), words: { insert: 1 } }, false],
      ['a link without a label', { ...to('/data'), done: { links: [{ href: '/' }] } }, false],
      ['another way to read', { ...to('/data'), read: { a: 'letters.get' } }, true],
      ['a way to read that is code', { ...to('/data'), read: { url: 'javascript:0' } }, false],
    ]);
  }
});

suite('enginedata without an engine, or of one without a schema', () => {
  for (const engine of [undefined, 'mine']) {
    check('content', engine, [
      [`anything for ${engine ?? 'none'}`, { ...own, html: 5, source: 5, target: 'x' }, true],
    ]);
  }
});

suite('enginedata of content.fetch', () => {
  const source = 'http://source.example/*';
  const sources = (count: number) =>
    Array.from({ length: count }, (_, at) => `http://source${at}.example/*`);
  const headers = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, at) => [`x-${at}`, 'y']));
  check('content.fetch', 'html', [
    ['a source', { source }, true],
    ['a source without *', { source: 'https://source.example/a?b=c' }, true],
    ['a source with a * inside its path', { source: 'http://source.example/a*' }, true],
    ['a source with a * in its query', { source: 'http://source.example/?p=*' }, true],
    ['members of its own, and html of another engine', { source, ...own, html: 5 }, true],
    ['several sources', { source: [source, 'https://other.example/*'] }, true],
    ['16 sources', { source: sources(16) }, true],
    ['17 sources', { source: sources(17) }, false],
    ['a list of no sources', { source: [] }, false],
    ['the same source twice', { source: [source, source] }, false],
    ['a source among several that is none', { source: [source, '/a/*'] }, false],
    ['no source', {}, false],
    ['a source that is no text', { source: 5 }, false],
    ['a * in the middle', { source: 'http://source.example/*/a' }, true],
    ['two *', { source: 'http://source.example/**' }, false],
    ['a * in the host', { source: 'http://source.example*' }, false],
    ['a * for the host', { source: 'http://*' }, false],
    ['a * in the port', { source: 'http://source.example:*' }, false],
    ['a fragment', { source: 'http://source.example/#*' }, false],
    ['a user', { source: 'http://user:pass@source.example/*' }, false],
    ['another scheme', { source: 'ftp://source.example/*' }, false],
    ['a file', { source: 'file:///etc/*' }, false],
    ['a path', { source: '/a/*' }, false],
    ['no URL', { source: 'source' }, false],
    ['4096 characters', { source: `http://source.example/${'a'.repeat(4_074)}` }, true],
    ['4097 characters', { source: `http://source.example/${'a'.repeat(4_075)}` }, false],
    ['header fields', { source, headers: { 'X-Own': 'a', authorization: 'Basic \xe9' } }, true],
    ['32 header fields', { source, headers: headers(32) }, true],
    ['33 header fields', { source, headers: headers(33) }, false],
    ['a header field that is no text', { source, headers: { a: 1 } }, false],
    ['a line break in a header field', { source, headers: { a: 'b\r\nc: d' } }, false],
    ['a header field that is not latin1', { source, headers: { a: 'ā' } }, false],
    ['a header field with a bad name', { source, headers: { 'a b': 'c' } }, false],
    ['a header field without a name', { source, headers: { '': 'c' } }, false],
    ['header fields in a list', { source, headers: ['a: b'] }, false],
    ['methods', { source, methods: ['GET', 'POST', 'UPGRADE', 'M-SEARCH'] }, true],
    ['no methods', { source, methods: [] }, false],
    ['a method in lower case', { source, methods: ['get'] }, false],
    ['a method that is none', { source, methods: ['GET /'] }, false],
    ['fields to pass', { source, pass: ['cookie'] }, true],
    ['fields to pass that are no list', { source, pass: 'cookie' }, false],
  ]);
});

suite('enginedata of resolve', () => {
  check('resolve', 'html', [
    ['nothing', {}, true],
    ['a path', { target: '/offers/?a=b#c' }, true],
    ['a URL', { target: 'HTTPS://other.example/' }, true],
    ['another key', { target: 'key:spring' }, true],
    ['no key', { target: 'key:' }, false],
    ['a path that is another host', { target: '//evil.example/' }, false],
    ['a path that browsers take for another host', { target: '/\\evil.example/' }, false],
    ['a script', { target: 'javascript:alert(1)' }, false],
    ['a script in data', { target: 'data:text/html,x' }, false],
    ['another scheme', { target: 'ftp://other.example/' }, false],
    ['a relative path', { target: 'offers/' }, false],
    ['nothing as target', { target: '' }, false],
    ['a target that is no text', { target: 5 }, false],
    ['a line break', { target: '/a\r\nSet-Cookie: b' }, false],
    ['a blank before', { target: ' https://other.example/' }, false],
    ['a tab inside', { target: 'java\tscript:alert(1)' }, false],
    ['a user', { target: 'https://site.example@evil.example/' }, false],
    ['no host', { target: 'https://' }, false],
    ['a page', { html: '<p>', status: 410 }, true],
    ['a page that is no text', { html: 5 }, false],
    ['a status of 200 and of 599', { status: 200, when: [{ status: 599 }] }, true],
    ['a status under 200', { status: 199 }, false],
    ['a status over 599', { status: 600 }, false],
    ['a status with a fraction', { status: 200.5 }, false],
    ['a status in words', { status: '302' }, false],
    ['forward_query', { forward_query: true }, true],
    ['forward_query in words', { forward_query: 'yes' }, false],
    ['when that is no list', { when: {} }, false],
    ['when of texts, which are named and left out', { when: ['x'] }, true],
    ['members of its own', own, true],
  ]);
});
