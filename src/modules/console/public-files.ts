import { readFile, readdir } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  type PageValues,
  type PublicFile,
  type PublicFileReplies,
  escapeHtml,
  genericPage,
  publicFile,
} from '../../core/http/content/page.ts';
import { knownEventTypes } from '../../core/log/events/event-types.ts';
import type { CompressiblePage, PageCompressor } from '../compression/page-compressor.ts';

/**
 * An engine's documentation (docs/design/rendering.md#generic-pages, `enginereference`), for people
 * and for tools.
 */
interface EngineReference {
  readonly page: PublicFile;
  /** JSON Schema 2020-12 of the engine's enginedata, as `application/schema+json`. */
  readonly schema: PublicFile;
}

/** Waymark's own files for browsers, all in memory. */
export interface PublicFiles {
  /**
   * A script, style sheet or documentation page by its path below `{base}/svc1`; undefined for any
   * other path.
   */
  file(path: string): PublicFile | undefined;
  /** The documentation of a built-in engine by its exact name; undefined for any other name. */
  engineReference(name: string): EngineReference | undefined;
  /** The built-in generic page. */
  page(values: PageValues): PublicFile;
}

const contentTypes: ReadonlyMap<string, string> = new Map([
  ['.js', 'text/javascript; charset=utf-8'],
  ['.css', 'text/css; charset=utf-8'],
]);

/** Browser builds of packages; each lies in the same folder as the build for Node. */
const modules = {
  '/engines/liquid.js': new URL('liquid.browser.mjs', import.meta.resolve('liquidjs')),
  '/engines/purify.js': new URL('purify.es.mjs', import.meta.resolve('dompurify')),
};

/**
 * Reads Waymark's own files from its folder `public` once, at start. Each `engines/<name>.html` has
 * an `engines/<name>.schema.json`. Rejects with the file system's error if a file is missing.
 */
export async function loadPublicFiles(folder: string): Promise<PublicFiles> {
  const read = (...names: string[]) => readFile(join(folder, ...names));
  const readReference = async (name: string): Promise<EngineReference> => ({
    page: publicFile('text/html; charset=utf-8', await read('engines', `${name}.html`)),
    schema: publicFile('application/schema+json', await read('engines', `${name}.schema.json`)),
  });

  const template = (await read('page.html')).toString();
  const webhooksText = (await read('webhooks.html')).toString();
  const webhooksPage = webhooksText.replace('{{event-types}}', eventTypeList);
  const webhooks = publicFile('text/html; charset=utf-8', Buffer.from(webhooksPage));
  const script = 'text/javascript; charset=utf-8';
  const files = new Map<string, PublicFile>([['/webhooks', webhooks]]);
  for (const [path, module] of Object.entries(modules)) {
    files.set(path, publicFile(script, await readFile(fileURLToPath(module))));
  }
  const references = new Map<string, EngineReference>();
  for (const path of await ownPaths(folder)) {
    const contentType = contentTypes.get(extname(path));
    if (contentType !== undefined) {
      files.set(`/${path.replaceAll('\\', '/')}`, publicFile(contentType, await read(path)));
    }
    const name = /^engines[/\\]([a-z]+)\.html$/.exec(path)?.[1];
    if (name !== undefined) references.set(name, await readReference(name));
  }
  return {
    file: (path) => files.get(path),
    engineReference: (name) => references.get(name),
    page: (values) => genericPage(template, values),
  };
}

/**
 * The paths in the folder, except in those of the console and of the documentation: these have
 * header fields of their own (console-files.ts, docs-files.ts), and a build may replace them now.
 */
async function ownPaths(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  const own = entries.filter(({ name }) => !/^(?:console|docs)(?:\.|$)/.test(name));
  const lists = own.map(async (entry) => {
    if (!entry.isDirectory()) return [entry.name];
    const inside = await readdir(join(folder, entry.name), { recursive: true });
    return inside.map((path) => join(entry.name, path));
  });
  return (await Promise.all(lists)).flat();
}

/** The known event types as the entries of a description list of HTML. */
function eventTypeList(): string {
  const entries = knownEventTypes.map(({ type, summary, own }) => {
    const raisedBy = own ? '<span>raised by Waymark</span>' : '';
    const term = `<dt><code>${escapeHtml(type)}</code>${raisedBy}</dt>`;
    return `<div>${term}<dd>${escapeHtml(summary)}</dd></div>`;
  });
  return entries.join('\n');
}

/** Creates the replies; the compressed forms of a file live as long as the file itself. */
export function createPublicFileReplies(compressor: PageCompressor): PublicFileReplies {
  const offered = new WeakMap<PublicFile, CompressiblePage>();
  return {
    respond(file, { fields, source }, request) {
      let page = offered.get(file);
      if (page === undefined) {
        const { contentType, etag, bytes } = file;
        const representation = {
          status: 200,
          contentType,
          etag,
          lastModifiedMs: undefined,
          fields,
          bytesLength: bytes.length,
        };
        page = compressor.prepare({ representation, bytes }, { source });
        offered.set(file, page);
      }
      return { ...compressor.respond(page, request), isReusable: true };
    },
  };
}
