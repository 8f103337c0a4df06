import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { version } from '../../src/core/values/version.ts';
import { generatedReference } from '../reference/reference.ts';
import { jsonSchemas } from '../reference/schemas.ts';
import { docsFolder, sections } from './contents.ts';
import { pageDocument, type Frame, type SitePage } from './layout.ts';
import { renderPage } from './markdown.ts';

/** Reads and renders all pages, those of the reference from the code's definitions. */
export async function readPages(): Promise<readonly SitePage[]> {
  const generated = await generatedReference();
  const files = sections.flatMap(({ title, folder, pages }) =>
    pages.map((name) => [title, folder === '' ? name : `${folder}/${name}`] as const),
  );
  return Promise.all(
    [['', 'index'] as const, ...files].map(async ([section, path]) => {
      const markdown =
        generated.get(path) ?? (await readFile(join(docsFolder, `${path}.md`), 'utf8'));
      const address = `${path.replace(/README$/, 'index')}.html`;
      return { ...renderPage(`${path}.md`, markdown), address, section, markdown };
    }),
  );
}

/** Writes the site to a folder, which it empties first. Returns the paths of its files. */
export async function buildDocs(out: string): Promise<readonly string[]> {
  const pages = await readPages();
  const files = new Map<string, string>();
  const asset = (name: string, text: string): string => {
    const hash = createHash('sha256').update(text).digest('base64url').slice(0, 10);
    const path = `assets/${name.replace('.', `.${hash}.`)}`;
    files.set(path, text);
    return path;
  };
  const theme = (name: string) => readFile(join(docsFolder, 'site/theme', name), 'utf8');
  const miniSearch = await readFile(fileURLToPath(import.meta.resolve('minisearch')), 'utf8');
  const library = asset('minisearch.js', miniSearch.replace(/\n\/\/# sourceMappingURL=.*/, ''));
  const script = (await theme('docs.js')).replace('./minisearch.js', `./${library.slice(7)}`);
  const frame: Frame = {
    version,
    pages,
    assets: {
      style: asset('docs.css', await theme('docs.css')),
      theme: asset('theme.js', await theme('theme.js')),
      script: asset('docs.js', script),
    },
    search: asset('search.json', JSON.stringify(searchEntries(pages))),
  };
  for (const page of pages) {
    files.set(page.address, pageDocument(page, frame));
    files.set(page.address.replace(/\.html$/, '.md'), publishedMarkdown(page.markdown));
  }
  for (const [name, schema] of jsonSchemas()) {
    files.set(`schemas/${name}.json`, `${JSON.stringify(schema, undefined, 2)}\n`);
  }
  // The Markdown of the first page shows it.
  files.set('site/theme/overview.svg', await theme('overview.svg'));
  files.set('llms.txt', llmsText(pages));
  files.set('llms-full.txt', pages.map(({ markdown }) => publishedMarkdown(markdown)).join('\n'));
  await writeFolder(out, files);
  return [...files.keys()];
}

/**
 * Writes the files that differ, and removes those that are no longer there: a server may read the
 * others meanwhile, such as while `npx waymark` prepares a clone.
 */
async function writeFolder(out: string, files: ReadonlyMap<string, string>): Promise<void> {
  for (const [path, text] of files) {
    const file = join(out, path);
    const before = await readFile(file, 'utf8').catch(() => undefined);
    if (before === text) continue;
    await mkdir(dirname(file), { recursive: true });
    const made = `${file}.${process.pid}`;
    await writeFile(made, text);
    await rename(made, file);
  }
  for (const entry of await readdir(out, { recursive: true, withFileTypes: true })) {
    const file = join(entry.parentPath, entry.name);
    const path = relative(out, file).replaceAll('\\', '/');
    if (entry.isFile() && !files.has(path)) await rm(file, { force: true });
  }
}

/** The entries of the full-text search: one for each part of a page below a heading. */
function searchEntries(pages: readonly SitePage[]) {
  return pages.flatMap(({ address, title, parts }) =>
    parts.map(({ id, heading, text }) => ({ href: `${address}#${id}`, title, heading, text })),
  );
}

/** The Markdown of a page as it is served: the page README of a folder is its index. */
function publishedMarkdown(markdown: string): string {
  return markdown.replaceAll(/\]\(([^)\s]*)README\.md/g, '](./$1index.md');
}

/** The index of the Markdown pages for language models (llmstxt.org). */
function llmsText(pages: readonly SitePage[]): string {
  const bySection = Map.groupBy(pages.slice(1), ({ section }) => section);
  const lists = [...bySection].map(([section, those]) => {
    const lines = those.map(
      ({ title, address }) => `- [${title}](./${address.replace(/html$/, 'md')})`,
    );
    return `## ${section}\n\n${lines.join('\n')}\n`;
  });
  const summary = 'A standalone web server: files on disk, page rules, fetched content, webhooks.';
  return `# Waymark ${version}\n\n> ${summary} llms-full.txt has all pages.\n\n${lists.join('\n')}`;
}

if (import.meta.main) {
  const out = process.argv[2] ?? fileURLToPath(new URL('../../public/docs', import.meta.url));
  const files = await buildDocs(out);
  process.stdout.write(`${files.length} files in ${out}\n`);
}
