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

/** Makes documents when they are first asked for, and keeps those of the origin asked for last. */
export function createDocuments({
  publicUrl,
  ...parts
}: DocumentParts & {
  /** The origin of the server where it is always the same one. */
  readonly publicUrl: string | undefined;
}): Documents {
  const latest = new Map<string, { readonly origin: string; readonly file: PublicFile }>();
  return {
    file(path, asked) {
      const generate = generators.get(path);
      if (generate === undefined) return undefined;
      const origin = publicUrl ?? asked;
      const known = latest.get(path);
      if (known?.origin === origin) return known.file;
      const bytes = Buffer.from(JSON.stringify(generate(parts, origin)));
      const file = publicFile('application/json', bytes);
      latest.set(path, { origin, file });
      return file;
    },
  };
}
