import { createHash } from 'node:crypto';
import { escapeHtml } from '../../core/http/content/page.ts';
import { encodePath, pathOfText } from '../../core/values/path.ts';
import { listingScript, listingScriptHash } from './listing-script.ts';
import type { Listing, ListingEntry } from './listing.ts';
import { mediaType } from './media-type.ts';

const framing = /(?:^|[;,])\s*(frame-ancestors\s[^;,]*)/i;

/**
 * The Content-Security-Policy of a listing: its own style sheet and script, and nothing else. It
 * replaces the mount's policy, which is made for the site's own pages and might block this style
 * sheet, but keeps the mount's frame-ancestors.
 */
export function listingPolicy(mountPolicy: string): string {
  const ancestors = framing.exec(mountPolicy)?.[1]?.trim() ?? "frame-ancestors 'self'";
  return (
    `default-src 'none'; style-src 'sha256-${styleHash}'; ` +
    `script-src 'sha256-${listingScriptHash}'; ` +
    `base-uri 'none'; form-action 'none'; ${ancestors}`
  );
}

/**
 * The HTML page of a listing. Whatever the names of files contain, it has no script but its own,
 * and links only to the folder's entries, the folders above it up to the mount's path, and the
 * front page.
 */
export function listingPage(listing: Listing, mountPath: string): string {
  const { path, entries, truncated } = listing;
  const segments = pathSegments(path, mountPath);
  const name = segments.at(-1)?.name ?? '';
  const rows = [...(path === mountPath ? [] : [parentRow]), ...entries.map(entryRow)];
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Index of ${escapeHtml(path)}</title>
<style>${listingStyle}</style>
</head>
<body>
${symbols}
<main>
${pathNav(segments)}<h1><bdi>${escapeHtml(name)}</bdi></h1>
<p class="sum">${summary(entries)}</p>
<div class="sheet">
${rows.length === 0 ? '<p class="empty">This folder is empty.</p>' : table(rows)}
</div>
${truncated ? truncatedNote(entries.length) : ''}</main>
<script>${listingScript}</script>
</body>
</html>
`;
}

/** A size such as `1.5 MiB` (IEC 80000-13). */
function formatBytes(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let value = bytes;
  let unit = 0;
  // toFixed would round 1023.95 KiB up to 1024.0 KiB.
  while (value >= (unit === 0 ? 1024 : 1023.95) && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit] ?? ''}`;
}

/** A part of the path above the heading; the last one, the folder itself, is not a link. */
interface PathSegment {
  readonly name: string;
  readonly href: string;
}

/** The front page, the mount, and the folders down to this one. */
function pathSegments(path: string, mountPath: string): readonly PathSegment[] {
  const below = path.slice(mountPath.length, -1);
  const folders = below === '' ? [] : below.split('/');
  const mount = mountPath === '/' ? [] : [mountPath.slice(1, -1)];
  const names = [...mount, ...folders];
  return [
    { name: 'Home', href: '/' },
    ...names.map((name, at) => ({ name, href: '../'.repeat(names.length - 1 - at) })),
  ];
}

function pathNav(segments: readonly PathSegment[]): string {
  if (segments.length === 1) return '';
  const items = segments.map(({ name, href }, at) => {
    const text = `<bdi>${escapeHtml(name)}</bdi>`;
    return at === segments.length - 1
      ? `<li aria-current="page">${text}</li>`
      : `<li><a href="${href}">${text}</a></li>`;
  });
  return `<nav aria-label="Path"><ol>${items.join('')}</ol></nav>\n`;
}

function summary(entries: readonly ListingEntry[]): string {
  const files = entries.filter(({ type }) => type === 'file');
  const folders = entries.length - files.length;
  const bytes = files.reduce((sum, { size }) => sum + (size ?? 0), 0);
  const counted = [
    folders > 0 ? count(folders, 'folder') : '',
    files.length > 0 || folders === 0 ? count(files.length, 'file') : '',
    files.length > 0 ? formatBytes(bytes) : '',
  ];
  return counted.filter((part) => part !== '').join(', ');
}

function count(number: number, noun: string): string {
  return `${number.toLocaleString('en')} ${noun}${number === 1 ? '' : 's'}`;
}

function table(rows: readonly string[]): string {
  return `<table>
<thead><tr><th scope="col">Name</th><th scope="col" class="size">Size</th>\
<th scope="col">Modified <span class="clock">(UTC)</span></th></tr></thead>
<tbody>
${rows.join('\n')}
</tbody>
</table>`;
}

const parentRow =
  '<tr><th scope="row"><a href="../"><svg aria-hidden="true"><use href="#up"/></svg>' +
  'Parent folder</a></th><td class="size"></td><td></td></tr>';

function entryRow({ name, type, size, modified }: ListingEntry): string {
  const folder = type === 'directory';
  const slash = folder ? '/' : '';
  // Without `./`, the browser would read `mailto:x` as a scheme.
  const href = escapeHtml(`./${encodePath(pathOfText(name))}${slash}`);
  return (
    `<tr${folder ? ' class="folder"' : ''}><th scope="row" data-bytes="${size ?? -1}">` +
    `<a href="${href}">` +
    `<svg aria-hidden="true"><use href="#${folder ? 'folder' : iconOf(name)}"/></svg>` +
    `<bdi>${escapeHtml(name)}${slash}</bdi></a></th>` +
    `<td class="size">${size === null ? '' : formatBytes(size)}</td>` +
    `<td><time datetime="${modified}">${modified.slice(0, 10)}` +
    `<span class="clock"> ${modified.slice(11, 16)}</span></time></td></tr>`
  );
}

function truncatedNote(shown: number): string {
  const number = shown.toLocaleString('en');
  return `<p class="note">This folder holds more: only ${number} entries are shown.</p>\n`;
}

function iconOf(name: string): string {
  const type = mediaType(name);
  if (type.startsWith('image/')) return 'image';
  if (/^(?:audio|video)\//.test(type)) return 'media';
  if (/zip|compressed|[-/]tar|archive|zstd/.test(type)) return 'archive';
  return /^text\/|json|xml|javascript|pdf|document/.test(type) ? 'text' : 'file';
}

const sheetOfPaper = '<path d="M4.5 2.5h7l4 4v11h-11z M11.5 2.5v4h4"/>';

/** The icons of the rows, drawn once and used by id. */
const symbols = `<svg class="symbols">${[
  ['folder', '<path d="M2.5 4.5h5.5l2 2h7.5v9.5h-15z"/>'],
  ['up', '<path d="M4.5 8.5l4-4 4 4 M8.5 4.5v8.5q0 2.5 2.5 2.5h4.5"/>'],
  ['file', sheetOfPaper],
  ['text', `${sheetOfPaper}<path d="M7.5 10.5h5 M7.5 13.5h5"/>`],
  ['archive', `${sheetOfPaper}<path d="M8 5v1 M8 8v1 M8 11v1 M8 14v1"/>`],
  ['image', '<path d="M2.5 3.5h15v13h-15z M2.5 14l4-4 3.5 3.5 3-3 4.5 4.5"/>'],
  ['media', '<path d="M2.5 3.5h15v13h-15z M8 7.5v5l4.5-2.5z"/>'],
]
  .map(([id = '', drawing = '']) => `<symbol id="${id}" viewBox="0 0 20 20">${drawing}</symbol>`)
  .join('')}</svg>`;

/** The style sheet of listings. */
const listingStyle = `
:root {
  --paper: #fbfbf9; --sheet: #ffffff; --ink: #1d1f23; --soft: #5b6068; --line: #e4e4df;
  --link: #0a50a8; --hover: #f1f5fb; --folder: #b7791f; --focus: #0a50a8;
  color-scheme: light dark;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #131519; --sheet: #1b1e23; --ink: #e8e9ec; --soft: #a4a9b3; --line: #2d3138;
    --link: #8fbcff; --hover: #232932; --folder: #e0b25c; --focus: #8fbcff;
  }
}
* { box-sizing: border-box }
body {
  margin: 0; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
}
main { max-width: 60rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem }
h1 { margin: 0; font-size: 1.6rem; line-height: 1.25; overflow-wrap: anywhere }
a { color: var(--link); text-decoration: none; border-radius: .2rem }
a:hover { text-decoration: underline }
a:focus-visible { outline: 2px solid var(--focus); outline-offset: 2px }
nav { margin-bottom: .35rem; font-size: .95rem }
nav ol { display: flex; flex-wrap: wrap; margin: 0; padding: 0; list-style: none }
nav li { overflow-wrap: anywhere }
nav li + li::before { content: "/"; padding: 0 .45rem; color: var(--soft) }
.sum, .note { color: var(--soft); font-size: .95rem }
.sum { margin: .25rem 0 1.25rem }
.note { margin: 1.25rem 0 0 }
.sheet {
  overflow: hidden; background: var(--sheet);
  border: 1px solid var(--line); border-radius: .6rem;
}
table { width: 100%; border-collapse: collapse }
th, td { padding: .5rem 1rem; text-align: left; vertical-align: top; font-weight: 400 }
thead th { padding-block: .6rem; color: var(--soft); font-size: .85rem; font-weight: 600 }
tbody tr { border-top: 1px solid var(--line) }
tbody tr:hover { background: var(--hover) }
tbody th { width: 99% }
tbody a { display: flex; gap: .65rem; overflow-wrap: anywhere }
tbody bdi { min-width: 0; unicode-bidi: isolate }
svg {
  flex: none; width: 1.2rem; height: 1.5rem; fill: none; color: var(--soft);
  stroke: currentColor; stroke-width: 1.4; stroke-linejoin: round; stroke-linecap: round;
}
.folder svg { color: var(--folder); fill: currentColor }
.symbols { display: none }
td { color: var(--soft); white-space: nowrap; font-variant-numeric: tabular-nums }
.size { text-align: right }
label { display: block; margin: 0 0 1rem; color: var(--soft) }
input {
  font: inherit; color: var(--ink); background: var(--sheet); padding: .25rem .6rem;
  border: 1px solid var(--soft); border-radius: .4rem; max-width: 100%;
}
thead button {
  font: inherit; color: inherit; background: none; border: 0; padding: 0; min-height: 1.5rem;
  cursor: pointer; white-space: nowrap;
}
button:focus-visible, input:focus-visible { outline: 2px solid var(--focus); outline-offset: 2px }
[aria-sort=ascending] button::after { content: " ↑" }
[aria-sort=descending] button::after { content: " ↓" }
.empty { margin: 0; padding: 2rem 1rem; text-align: center; color: var(--soft) }
@media (max-width: 34rem) {
  main { padding: 1.5rem .75rem 3rem }
  h1 { font-size: 1.35rem }
  th, td { padding-inline: .4rem }
  tr > :first-child { padding-left: .75rem }
  tr > :last-child { padding-right: .75rem }
  td { font-size: .85rem; line-height: 1.5rem }
  .clock { display: none }
}
@media (prefers-contrast: more) { :root { --soft: var(--ink); --line: var(--soft) } }
@media print { .sheet { border: 0 } svg { display: none } }
`;

const styleHash = createHash('sha256').update(listingStyle).digest('base64');
