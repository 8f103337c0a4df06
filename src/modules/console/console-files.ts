import { existsSync } from 'node:fs';
import { readFile, readdir } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { type PublicFile, pageFields, publicFile } from '../../core/http/content/page.ts';
import type { FieldList } from '../../core/http/reply.ts';

/** A file of the console with its header fields besides those of its content. */
export interface ConsoleFile {
  readonly file: PublicFile;
  readonly fields: FieldList;
}

/** The built files of the console (docs/design/console.md), by their paths below `/console/`. */
export type ConsoleFiles = ReadonlyMap<string, ConsoleFile>;

const contentTypes: ReadonlyMap<string, string> = new Map([
  ['.html', 'text/html; charset=utf-8'],
  ['.js', 'text/javascript; charset=utf-8'],
  ['.css', 'text/css; charset=utf-8'],
  ['.svg', 'image/svg+xml'],
]);

/** The index page of an origin that serves only the console. */
export const aloneIndex = 'alone.html';

/**
 * Reads the built console once, at start. Without a build there are no files: the server then has
 * no console.
 */
export async function loadConsoleFiles(folder: string): Promise<ConsoleFiles> {
  const files = new Map<string, ConsoleFile>();
  if (!existsSync(join(folder, 'index.html'))) return files;
  for (const found of await readdir(folder, { recursive: true })) {
    const contentType = contentTypes.get(extname(found));
    if (contentType === undefined) continue;
    const path = found.replaceAll('\\', '/');
    const bytes = await readFile(join(folder, found));
    const file = publicFile(contentType, bytes);
    files.set(path === 'index.html' ? '' : path, { file, fields: fieldsOf(path) });
    if (path !== 'index.html') continue;
    const alone = Buffer.from(bytes.toString().replace('<html', '<html data-alone'));
    files.set(aloneIndex, { file: publicFile(contentType, alone), fields: fieldsOf(path) });
  }
  return files;
}

function fieldsOf(path: string): FieldList {
  if (path === 'index.html') return documentFields(consolePolicy);
  if (path === 'preview.html') return documentFields(previewPolicy);
  if (!path.startsWith('assets/')) return ['Cache-Control', 'no-cache', ...pageFields];
  // The names of these files contain a hash of their content.
  return ['Cache-Control', 'public, max-age=31536000, immutable', ...pageFields];
}

/** Only the console's own files; no inline scripts or styles; no text becomes HTML or a script. */
const consolePolicy: readonly string[] = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "font-src 'self'",
  "connect-src 'self'",
  "frame-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
];

/**
 * The frame that shows a page has an opaque origin, also if it is opened on its own, and connects
 * to nothing; it may load what the page shows from this origin.
 */
const previewPolicy: readonly string[] = [
  'sandbox allow-scripts',
  "default-src 'none'",
  "script-src 'self' 'unsafe-inline'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self' data:",
  "media-src 'self' data:",
  "form-action 'none'",
  "frame-ancestors 'self'",
];

function documentFields(policy: readonly string[]): FieldList {
  const isFramed = policy === previewPolicy;
  return [
    'Cache-Control',
    'no-cache',
    'Content-Security-Policy',
    policy.join('; '),
    // A page that opens the console in a window is severed from it.
    'Cross-Origin-Opener-Policy',
    'same-origin',
    'Referrer-Policy',
    'no-referrer',
    'Permissions-Policy',
    'camera=(), geolocation=(), microphone=()',
    ...(isFramed ? [] : ['X-Frame-Options', 'DENY', 'Cross-Origin-Resource-Policy', 'same-origin']),
    ...pageFields,
  ];
}
