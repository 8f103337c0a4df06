import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import MarkdownIt, { type Token } from 'markdown-it';
import { docsFolder } from './contents.ts';

/** The parts of highlight.js that the site uses; its own types bring those of browsers. */
interface Highlighter {
  registerLanguage(name: string, language: unknown): void;
  getLanguage(name: string): object | undefined;
  highlight(code: string, options: { readonly language: string }): { readonly value: string };
}

const require = createRequire(import.meta.url);
const hljs = require('highlight.js/lib/core') as Highlighter;
const languages = 'bash css go http ini javascript json nginx php python typescript xml';
for (const name of languages.split(' ')) {
  hljs.registerLanguage(name, require(`highlight.js/lib/languages/${name}`));
}

/** A heading of a page. */
export interface Heading {
  readonly level: number;
  readonly id: string;
  readonly text: string;
}

/** A part of a page below one heading, as search finds it. */
export interface SearchPart {
  readonly id: string;
  readonly heading: string;
  readonly text: string;
}

/** A page of the documentation in HTML. */
export interface RenderedPage {
  readonly title: string;
  readonly html: string;
  readonly headings: readonly Heading[];
  readonly parts: readonly SearchPart[];
  /** The targets of its links as they stand in the Markdown. */
  readonly links: readonly string[];
}

const aliases: Readonly<Record<string, string>> = {
  sh: 'bash',
  js: 'javascript',
  ts: 'typescript',
  ndjson: 'json',
  html: 'xml',
};

/** Highlights code; a language that is not registered stays plain. */
export function highlightCode(code: string, language: string): string {
  const name = aliases[language];
  const known = hljs.getLanguage(name ?? language) === undefined ? undefined : (name ?? language);
  return known === undefined
    ? MarkdownIt().utils.escapeHtml(code)
    : hljs.highlight(code, { language: known }).value;
}

/**
 * Renders a page from Markdown. `path` is its file below docs/, to resolve links: those to other
 * Markdown files below docs/ lead to their pages, and those to files elsewhere become text.
 */
export function renderPage(path: string, markdown: string): RenderedPage {
  const parser = new MarkdownIt({ html: false, linkify: false, typographer: false });
  const { rules } = parser.renderer;
  rules.fence = (tokens, at) => {
    const { content = '', info = '' } = tokens[at] ?? {};
    const language = info.trim().split(/\s+/)[0] ?? '';
    const code = highlightCode(content, language);
    return `<pre tabindex="0" data-language="${language}"><code>${code}</code></pre>\n`;
  };
  rules.image = (given, at) => picture(path, given[at]);
  rules.table_open = () => '<div class="table" tabindex="0"><table>\n';
  rules.table_close = () => '</table></div>\n';
  const tokens = parser.parse(markdown, {});
  const used = new Map<string, number>();
  const headings = addIds(tokens, used);
  addRowIds(tokens, used);
  makeEmptyHeadersPlain(tokens);
  const links = rewriteLinks(path, tokens);
  const [first] = headings;
  if (first?.level !== 1) throw new Error(`${path} has to begin with a heading of level 1.`);
  return {
    title: first.text,
    html: parser.renderer.render(tokens, parser.options, {}),
    headings: headings.slice(1).filter(({ level }) => level <= 3),
    parts: searchParts(tokens),
    links,
  };
}

/**
 * A picture of docs/ as a part of the page, so that it has the colours of the theme that the reader
 * has chosen.
 */
function picture(path: string, token: Token | undefined): string {
  const file = posix.join(posix.dirname(path), String(token?.attrGet('src')));
  const svg = readFileSync(join(docsFolder, file), 'utf8');
  const alt = MarkdownIt().utils.escapeHtml(token?.content ?? '');
  return svg.trim().replace('<svg ', `<svg role="img" aria-label="${alt}" `);
}

function addIds(tokens: readonly Token[], used: Map<string, number>): readonly Heading[] {
  return tokens.flatMap((token, at) => {
    if (token.type !== 'heading_open') return [];
    const text = plainText(tokens[at + 1]);
    const id = newId(slug(text), used);
    token.attrSet('id', id);
    return [{ level: Number(token.tag.slice(1)), id, text }];
  });
}

/** Gives each row of a table whose first cell is one name in code that name as its id. */
function addRowIds(tokens: readonly Token[], used: Map<string, number>): void {
  for (const [at, token] of tokens.entries()) {
    if (token.type !== 'tr_open' || tokens[at + 1]?.type !== 'td_open') continue;
    const [code, ...more] = tokens[at + 2]?.children ?? [];
    if (code?.type !== 'code_inline' || more.length > 0) continue;
    if (/^[\w.-]+$/.test(code.content)) token.attrSet('id', newId(code.content, used));
  }
}

/** Makes empty header cells of tables plain cells: an empty header names nothing (axe). */
function makeEmptyHeadersPlain(tokens: readonly Token[]): void {
  for (const [at, token] of tokens.entries()) {
    const [content, close] = [tokens[at + 1], tokens[at + 2]];
    if (token.type !== 'th_open' || content?.content !== '' || close === undefined) continue;
    token.tag = 'td';
    close.tag = 'td';
  }
}

/** The name, or with a number if the page has it already. */
function newId(name: string, used: Map<string, number>): string {
  const count = used.get(name) ?? 0;
  used.set(name, count + 1);
  return count === 0 ? name : `${name}-${count}`;
}

/** The fragment of a heading, as GitHub and other tools make it. */
export function slug(text: string): string {
  return text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replaceAll(/\s/g, '-');
}

function rewriteLinks(path: string, tokens: readonly Token[]): readonly string[] {
  const links: string[] = [];
  for (const { children } of tokens) {
    for (const [at, token] of (children ?? []).entries()) {
      if (token.type !== 'link_open') continue;
      const href = String(token.attrGet('href'));
      links.push(href);
      const target = pageHref(path, href);
      if (target !== undefined) token.attrSet('href', target);
      else unlink(children ?? [], at);
    }
  }
  return links;
}

/** The address of a link's target in the site; undefined for a file outside docs/. */
function pageHref(path: string, href: string): string | undefined {
  if (/^(?:https?:|mailto:|#)/.test(href)) return href;
  const [file = '', fragment] = href.split('#');
  const target = posix.join(posix.dirname(path), file);
  if (target.startsWith('..')) return undefined;
  const hash = fragment === undefined ? '' : `#${fragment}`;
  return file.replace(/README\.md$/, 'index.html').replace(/\.md$/, '.html') + hash;
}

/** Turns a link into its text. */
function unlink(children: Token[], at: number): void {
  const end = children.findIndex(({ type }, index) => index > at && type === 'link_close');
  for (const index of [at, end]) {
    const token = children[index];
    if (token !== undefined) [token.type, token.tag, token.content] = ['text', '', ''];
  }
}

function searchParts(tokens: readonly Token[]): readonly SearchPart[] {
  const parts: { id: string; heading: string; text: string }[] = [];
  for (const [at, token] of tokens.entries()) {
    if (token.type === 'heading_open') {
      const id = String(token.attrGet('id'));
      parts.push({ id, heading: plainText(tokens[at + 1]), text: '' });
    } else if (tokens[at - 1]?.type !== 'heading_open') {
      const part = parts.at(-1);
      if (part !== undefined && (token.type === 'inline' || token.type === 'fence')) {
        part.text += `${plainText(token)}\n`;
      }
    }
  }
  return parts;
}

function plainText(token: Token | undefined): string {
  if (token?.type === 'fence') return token.content;
  const children = token?.children ?? [];
  return children.map(({ type, content }) => (type === 'softbreak' ? ' ' : content)).join('');
}
