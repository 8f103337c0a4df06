import { LRUCache } from 'lru-cache';
import type { FieldList, Reply } from '../http/reply.ts';
import type { ContentRequest } from '../http/request.ts';
import { cacheUse, type CacheUse } from '../observability/memory-use.ts';
import { publicAnswerBytes, publicAnswersBytesMax } from '../model/limits.ts';
import { ownBytes } from '../model/own-bytes.ts';
import type { OwnFiles } from '../pages/own-files.ts';
import { publicFile, type PublicFile } from '../http/page.ts';

/** Envelopes that anybody is answered with, as representations: validated, compressed, prepared. */
export interface PublicAnswers {
  /** The answer that an envelope's bytes make; `vary` names the fields that it was chosen by. */
  respond(
    bytes: Buffer,
    vary: 'Accept-Language' | undefined,
    request: Pick<ContentRequest, 'method' | 'fields'>,
  ): Reply;
  /** What is in memory of them. */
  memory(): CacheUse;
}

/** Keeps the answers given last, so that each is compressed once and not each time. */
export function createPublicAnswers(ownFiles: OwnFiles): PublicAnswers {
  const latest = new LRUCache<string, PublicFile>({
    maxSize: publicAnswersBytesMax,
    sizeCalculation: ({ bytes }) => bytes.length + publicAnswerBytes,
  });
  return {
    memory: () => cacheUse('public envelopes', latest),
    respond(bytes, vary, request) {
      const made = publicFile('application/json', bytes);
      const key = `${made.etag}${vary ?? ''}`;
      let file = latest.get(key);
      if (file === undefined) {
        file = { ...made, bytes: ownBytes(made.bytes) };
        latest.set(key, file);
      }
      const fields = vary === undefined ? said : [...said, 'Vary', vary];
      return ownFiles.respond(file, { fields, source: 'svc1' }, request);
    },
  };
}

const said: FieldList = ['Cache-Control', 'private, no-cache', 'X-Content-Type-Options', 'nosniff'];
