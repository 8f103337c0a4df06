import { publicFile, type PublicFile } from '../http/page.ts';
import { asyncApi } from '../api/documents/asyncapi.ts';
import { openApi, type DocumentParts } from '../api/documents/openapi.ts';

/** The documents of the operations, by their paths below `{base}/svc1`. */
export interface Documents {
  /** The file at a path, for a caller who reaches the server at an origin; or undefined. */
  file(path: string, origin: string): PublicFile | undefined;
}

const generators: ReadonlyMap<string, typeof openApi> = new Map([
  ['/openapi.json', openApi],
  ['/asyncapi.json', asyncApi],
]);

/** Stands for the host in the text of a document: no host has this name (RFC 6761 §6.4). */
const anyHost = 'host.invalid';

/**
 * Makes documents when they are first requested, one for each scheme; another host costs a
 * replacement, for anybody can make up a Host. Keeps those of the origin requested last.
 */
export function createDocuments({
  publicUrl,
  ...parts
}: DocumentParts & {
  /** The origin of the server where it is always the same one. */
  readonly publicUrl: string | undefined;
}): Documents {
  const texts = new Map<string, string>();
  const latest = new Map<string, { readonly origin: string; readonly file: PublicFile }>();

  function textOf(path: string, scheme: string, generate: typeof openApi): string {
    const key = `${scheme}//${path}`;
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
