import type { FieldList, Reply } from '../http/reply.ts';
import type { ContentRequest } from '../http/request.ts';
import type { PageCompressor, CompressiblePage } from '../compression/page-compressor.ts';
import type { PublicFile } from '../http/page.ts';

/** Answers with what Waymark itself brings along, all of it held in memory. */
export interface OwnFiles {
  /** The answer of a file, which says the same fields of it and names the same source each time. */
  respond(
    file: PublicFile,
    said: { readonly fields: FieldList; readonly source: string },
    request: Pick<ContentRequest, 'method' | 'fields'>,
  ): Reply;
}

/** Keeps own files ready to send, each as long as somebody keeps the file. */
export function createOwnFiles(compressor: PageCompressor): OwnFiles {
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
        page = compressor.prepare({ representation, bytes }, source);
        offered.set(file, page);
      }
      return { ...compressor.respond(page, request), isReusable: true };
    },
  };
}
