import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { suite, test } from 'node:test';
import { buildDocs } from '../../docs/site/build.ts';
import { docsFolder, sections } from '../../docs/site/contents.ts';
import { project } from '../tidy/sources.ts';
import { builtDocs } from './built-docs.ts';

const { folder: builtFolder, docs } = await builtDocs();
const pages = new Map(
  [...docs]
    .filter(([, { file }]) => file.contentType.startsWith('text/html'))
    .map(([path, { file }]) => [path, file.bytes.toString()]),
);

suite('the documentation', () => {
  test('has no dead link and no dead fragment', () => {
    const ids = new Map(
      [...pages].map(([path, html]) => [
        path,
        new Set([...html.matchAll(/ id="([^"]*)"/g)].map(([, id]) => id)),
      ]),
    );
    const dead = [...pages].flatMap(([path, html]) =>
      [...html.matchAll(/ (?:href|src)="([^"]*)"/g)].flatMap(([, href = '']) => {
        if (/^(?:https?:|mailto:|data:)/.test(href)) return [];
        const [file = '', fragment] = href.split('#');
        const joined = file === '' ? path : posix.join(posix.dirname(`./${path}x`), file);
        const target = joined.replace(/(^|\/)index\.html$/, '$1').replace(/^\.\/?$/, '');
        if (!docs.has(target)) return [`${path}: ${href}`];
        const known = fragment === undefined || (ids.get(target)?.has(fragment) ?? false);
        return known ? [] : [`${path}: ${href}`];
      }),
    );
    assert.deepEqual(dead, []);
  });

  test('has the pages that the console opens', () => {
    const path = /'((?:start|how-to|reference|explanation|design)\/[a-z-]+\.html)(?:#[^']*)?'/g;
    const named = globSync('console/src/**/*.{ts,tsx}', { cwd: project }).flatMap((file) =>
      [...readFileSync(join(project, file), 'utf8').matchAll(path)].map(([, page = '']) => page),
    );
    assert.ok(named.length > 5);
    assert.deepEqual(
      named.filter((page) => !docs.has(page)),
      [],
    );
  });

  test('has every page in its navigation', () => {
    const listed = sections.flatMap(({ folder, pages: names }) =>
      names.map((name) => `${folder === '' ? '' : `${folder}/`}${name}.md`),
    );
    const found = globSync('**/*.md', { cwd: docsFolder }).map((path) =>
      path.replaceAll('\\', '/'),
    );
    const missing = found.filter((path) => path !== 'index.md' && !listed.includes(path));
    assert.deepEqual(missing, []);
  });

  test('has no empty header cell in a table', () => {
    for (const [path, html] of pages) assert.doesNotMatch(html, /<th[^>]*><\/th>/, path);
    assert.match(pages.get('reference/commands.html') ?? '', /<tr>\s*<td[^>]*><\/td>\s*<th/);
  });

  test('has no inline script and no inline style, which its policy forbids', () => {
    for (const [path, html] of pages) {
      assert.doesNotMatch(html, /<script(?![^>]*\bsrc=)|<style|\sstyle=|\son[a-z]+=/, path);
    }
  });

  test('has each page as Markdown, and lists them for language models', () => {
    const list = docs.get('llms.txt')?.file.bytes.toString() ?? '';
    for (const [path] of pages) {
      const markdown =
        path === '' || path.endsWith('/') ? `${path}index.md` : path.replace(/html$/, 'md');
      assert.ok(docs.has(markdown), markdown);
      if (markdown !== 'index.md') assert.ok(list.includes(`(./${markdown})`), markdown);
    }
    assert.ok((docs.get('llms-full.txt')?.file.bytes.length ?? 0) > 100_000);
  });

  test('is built again in place: what has not changed stays, and what is not in it goes', async () => {
    const [same, changed, other] = ['index.html', 'llms.txt', 'former.html'].map((name) =>
      join(builtFolder, name),
    ) as [string, string, string];
    const before = statSync(same).ino;
    const text = readFileSync(changed, 'utf8');
    writeFileSync(changed, 'before');
    writeFileSync(other, 'before');
    await buildDocs(builtFolder);
    assert.equal(statSync(same).ino, before);
    assert.equal(readFileSync(changed, 'utf8'), text);
    assert.ok(!existsSync(other));
  });
});
