import { escapeHtml } from '../../src/core/http/content/page.ts';
import type { RenderedPage } from './markdown.ts';

/** A page with its place in the site. */
export interface SitePage extends RenderedPage {
  /** Its address below the site, such as `how-to/tls.html`. */
  readonly address: string;
  readonly section: string;
  /** Its Markdown, with relative links to the Markdown of other pages. */
  readonly markdown: string;
}

/** What all pages show. */
export interface Frame {
  readonly version: string;
  readonly pages: readonly SitePage[];
  /** The addresses of the site's own files. */
  readonly assets: { readonly style: string; readonly theme: string; readonly script: string };
  readonly search: string;
}

/** The HTML document of a page. It has no inline script and no inline style. */
export function pageDocument(page: SitePage, frame: Frame): string {
  const root = '../'.repeat(page.address.split('/').length - 1);
  const { assets, version } = frame;
  const markdown =
    page.address
      .split('/')
      .at(-1)
      ?.replace(/\.html$/, '.md') ?? '';
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${page.title === 'Waymark' ? 'Waymark' : `${escapeHtml(page.title)} · Waymark`}</title>
<link rel="icon" href="data:,">
<link rel="alternate" type="text/markdown" href="${markdown}">
<script src="${root}${assets.theme}"></script>
<link rel="stylesheet" href="${root}${assets.style}">
<script type="module" src="${root}${assets.script}"></script>
</head>
<body data-root="${root}" data-search="${root}${frame.search}">
<a class="skip" href="#content">Skip to the content</a>
<header>
<a class="brand" href="${root}index.html">Waymark</a> <span class="version">${escapeHtml(version)}</span>
<button type="button" id="search-button" hidden>Search <kbd>/</kbd></button>
<button type="button" id="theme-button" hidden>Dark</button>
</header>
<nav aria-label="Pages">
<details id="pages" open><summary>All pages</summary>
${navigation(page, frame.pages, root)}
</details>
</nav>
<main id="content">
<article>
${page.html}</article>
${neighbours(page, frame.pages, root)}
<p class="source"><a href="${markdown}">This page as Markdown</a></p>
</main>
${outline(page)}
<dialog id="search" aria-label="Search">
<form method="dialog"><label for="query">Search the documentation</label>
<input id="query" type="search" autocomplete="off" spellcheck="false">
<button>Close</button></form>
<ol id="results" aria-live="polite"></ol>
</dialog>
</body>
</html>
`;
}

function navigation(current: SitePage, pages: readonly SitePage[], root: string): string {
  const bySection = Map.groupBy(pages, ({ section }) => section);
  return [...bySection]
    .filter(([section]) => section !== '')
    .map(([section, those]) => {
      const items = those.map(({ address, title }) => {
        const here = address === current.address ? ' aria-current="page"' : '';
        return `<li><a href="${root}${address}"${here}>${escapeHtml(title)}</a></li>`;
      });
      return `<p class="section">${escapeHtml(section)}</p>\n<ul>\n${items.join('\n')}\n</ul>`;
    })
    .join('\n');
}

/** With more headings, the outline of a page has only those of its parts. */
const outlinedMax = 120;

function outline({ headings }: SitePage): string {
  if (headings.length < 2) return '';
  const isLong = headings.length > outlinedMax;
  const shown = isLong ? headings.filter(({ level }) => level === 2) : headings;
  const items = shown.map(
    ({ level, id, text }) =>
      `<li class="level-${level}"><a href="#${escapeHtml(id)}">${escapeHtml(text)}</a></li>`,
  );
  return `<aside aria-label="On this page">
<p class="section">On this page</p>
<ul>
${items.join('\n')}
</ul>
</aside>`;
}

function neighbours(page: SitePage, pages: readonly SitePage[], root: string): string {
  const at = pages.indexOf(page);
  const link = (other: SitePage | undefined, rel: string, word: string): string =>
    other === undefined
      ? ''
      : `<a rel="${rel}" href="${root}${other.address}">${word}: ${escapeHtml(other.title)}</a>`;
  const links = link(pages[at - 1], 'prev', 'Before') + link(pages[at + 1], 'next', 'Next');
  return `<p class="neighbours">${links}</p>`;
}
