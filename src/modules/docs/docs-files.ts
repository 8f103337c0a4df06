import { existsSync, readFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { type PublicFile, pageFields, publicFile } from '../../core/http/content/page.ts';
import type { FieldList } from '../../core/http/reply.ts';
import { Failure } from '../../core/values/failure.ts';

/** A file of the documentation with its header fields besides those of its content. */
class DocsFile {
  readonly fields: FieldList;
  readonly #path: string;
  readonly #contentType: string;
  #file: PublicFile | undefined;

  constructor(path: string, contentType: string, fields: FieldList) {
    this.fields = fields;
    this.#path = path;
    this.#contentType = contentType;
  }

  /**
   * The content, which is read at the first request for it: few servers send all of it.
   * Throws `not_found` if the file was removed since the start.
   */
  get file(): PublicFile {
    this.#file ??= publicFile(this.#contentType, this.#read());
    return this.#file;
  }

  #read(): Buffer {
    try {
      return readFileSync(this.#path);
    } catch (cause) {
      const text =
        'The documentation was replaced. Restart the server, which then has the new one.';
      throw new Failure('not_found', text, { cause });
    }
  }
}

/** The built documentation (docs/design/documentation.md), by paths below `/svc1/docs/`. */
export type DocsFiles = ReadonlyMap<string, DocsFile>;

const contentTypes: ReadonlyMap<string, string> = new Map([
  ['.html', 'text/html; charset=utf-8'],
  ['.md', 'text/markdown; charset=utf-8'],
  ['.txt', 'text/plain; charset=utf-8'],
  ['.js', 'text/javascript; charset=utf-8'],
  ['.css', 'text/css; charset=utf-8'],
  ['.json', 'application/json'],
  ['.svg', 'image/svg+xml'],
]);

/**
 * Finds the files of the built documentation, at start. Without a build there are none: the server
 * then has no documentation.
 */
export async function loadDocsFiles(folder: string): Promise<DocsFiles> {
  const files = new Map<string, DocsFile>();
  if (!existsSync(join(folder, 'index.html'))) return files;
  for (const found of await readdir(folder, { recursive: true })) {
    const contentType = contentTypes.get(extname(found));
    if (contentType === undefined) continue;
    const path = found.replaceAll('\\', '/');
    const type = path.startsWith('schemas/') ? 'application/schema+json' : contentType;
    const shown = new DocsFile(join(folder, found), type, fieldsOf(path));
    files.set(path, shown);
    if (/(?:^|\/)index\.html$/.test(path)) files.set(path.slice(0, -'index.html'.length), shown);
  }
  return files;
}

function fieldsOf(path: string): FieldList {
  // The names of these files contain a hash of their content.
  const isHashed = path.startsWith('assets/');
  const lifetime = isHashed ? 'public, max-age=31536000, immutable' : 'public, no-cache';
  const cors = path.startsWith('schemas/') ? ['Access-Control-Allow-Origin', '*'] : [];
  const guards = path.endsWith('.html')
    ? ['Content-Security-Policy', documentPolicy, 'Referrer-Policy', 'no-referrer']
    : [];
  return ['Cache-Control', lifetime, ...guards, ...cors, ...pageFields];
}

/** The pages use their own files only, without inline scripts or styles. */
const documentPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  'img-src data:',
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');
