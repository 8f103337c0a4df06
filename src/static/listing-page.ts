import { createHash } from 'node:crypto';
import { escapeHtml } from '../http/html.ts';
import { encodePath } from '../model/path.ts';
import type { Listing, ListingEntry } from './listing.ts';
import { listingStyle } from './listing-style.ts';
import { mediaType } from './media-type.ts';

const styleHash = createHash('sha256').update(listingStyle).digest('base64');

const framing = /(?:^|[;,])\s*(frame-ancestors\s[^;,]*)/i;

/**
 * The Content-Security-Policy of a listing: its own style sheet and nothing else. It replaces the
 * mount's policy, which is made for the site's own pages and might block this style sheet, but
 * keeps the mount's frame-ancestors.
 */
export function listingPolicy(mountPolicy: string): string {
  const ancestors = framing.exec(mountPolicy)?.[1]?.trim() ?? "frame-ancestors 'self'";
  return (
    `default-src 'none'; style-src 'sha256-${styleHash}'; ` +
    `base-uri 'none'; form-action 'none'; ${ancestors}`
  );
}

/**
 * The HTML page of a listing. Whatever the names of files contain, it has no scripts and links only
 * to the folder's entries, the folders above it up to the mount's path, and the front page.
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
  const href = escapeHtml(`./${encodePath(name)}${slash}`);
  return (
    `<tr${folder ? ' class="folder"' : ''}><th scope="row"><a href="${href}">` +
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
