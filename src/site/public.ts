import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { genericPage, publicFile, type PageValues, type PublicFile } from './page.ts';

/** An engine's documentation (contract §6, `enginereference`), for people and for tools. */
export interface EngineReference {
  readonly page: PublicFile;
  /** JSON Schema 2020-12 of the engine's enginedata, as `application/schema+json`. */
  readonly schema: PublicFile;
}

/** What Waymark itself gives to browsers, all in memory: no request for it reaches the disk. */
export interface PublicFiles {
  /** `{base}/svc1/engine.js`, the loader of generic pages. */
  readonly engineScript: PublicFile;
  /** The documentation of a built-in engine by its exact name; undefined for any other text. */
  engineReference(name: string): EngineReference | undefined;
  /** The built-in generic page. */
  page(values: PageValues): PublicFile;
}

/**
 * Reads Waymark's own files from its folder `public` once, at start. Each `engines/<name>.html`
 * stands beside its `engines/<name>.schema.json`. Rejects with the file system's error where the
 * installation lacks one.
 */
export async function loadPublicFiles(folder: string): Promise<PublicFiles> {
  const read = (...names: string[]) => readFile(join(folder, ...names));
  const readReference = async (name: string): Promise<EngineReference> => ({
    page: publicFile('text/html; charset=utf-8', await read('engines', `${name}.html`)),
    schema: publicFile('application/schema+json', await read('engines', `${name}.schema.json`)),
  });

  const engineScript = publicFile('text/javascript; charset=utf-8', await read('engine.js'));
  const template = (await read('page.html')).toString();
  const references = new Map<string, EngineReference>();
  for (const file of await readdir(join(folder, 'engines'))) {
    if (!file.endsWith('.html')) continue;
    const name = file.slice(0, -'.html'.length);
    references.set(name, await readReference(name));
  }

  return {
    engineScript,
    engineReference: (name) => references.get(name),
    page: (values) => genericPage(template, values),
  };
}
