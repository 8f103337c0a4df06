import { publicFile, type PublicFile } from '../../core/http/content/page.ts';
import { asyncApi } from './asyncapi.ts';
import { openApi, type DocumentParts } from './openapi.ts';

/** The documents of the operations, by their paths below `{base}/svc1`. */
export interface Documents {
  /** Returns the file at a path, for a caller at an origin of the server; undefined without one. */
  file(path: string, origin: string): PublicFile | undefined;
}

const generators: ReadonlyMap<string, typeof openApi> = new Map([
  ['/openapi.json', openApi],
  ['/asyncapi.json', asyncApi],
]);

/** The names of the documents below `{base}/svc1/`. */
export const documentNames: readonly string[] = [...generators.keys()].map((path) => path.slice(1));

/** A placeholder for the host in the text of a document: no host has this name (RFC 6761 §6.4). */
const anyHost = 'host.invalid';

/**
 * Makes documents at the first request for them, one for each scheme, and replaces the host in
 * them: a client can send any Host. Caches the documents of the newest origin.
 */
export function createDocuments({
  publicUrl,
  operations,
  ...others
}: Omit<DocumentParts, 'operations'> & {
  readonly operations: () => DocumentParts['operations'];
  /** The origin of the server, if the ini file has one. */
  readonly publicUrl: string | undefined;
}): Documents {
  const texts = new Map<string, string>();
  const latest = new Map<string, { readonly origin: string; readonly file: PublicFile }>();

  function textOf(path: string, scheme: string, generate: typeof openApi): string {
    const key = `${scheme}//${path}`;
    const parts = { ...others, operations: operations() };
    const known = texts.get(key) ?? JSON.stringify(generate(parts, `${scheme}//${anyHost}`));
    texts.set(key, known);
    return known;
  }

  return {
    file(path, asked) {
      const generate = generators.get(path);
      if (generate === undefined) return undefined;
      const origin = publicUrl ?? asked;
      const known = latest.get(path);
      if (known?.origin === origin) return known.file;
      const { protocol, host } = new URL(origin);
      const text = textOf(path, protocol, generate).replaceAll(anyHost, () => host);
      const file = publicFile('application/json', Buffer.from(text));
      latest.set(path, { origin, file });
      return file;
    },
  };
}
