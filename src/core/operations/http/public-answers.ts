import { LRUCache } from 'lru-cache';
import { type PublicFile, type PublicFileReplies, pageFields } from '../../http/content/page.ts';
import type { FieldList, Reply } from '../../http/reply.ts';
import type { ContentRequest } from '../../http/request.ts';
import { type CacheUse, cacheUse } from '../../report/memory-use.ts';
import { unpooled } from '../../values/json/prepared-json.ts';
import { MIB } from '../../values/units.ts';

/** Public answers of operations in memory, with their compressed forms. */
const publicAnswersBytesMax = 64 * MIB;

/** The overhead of a public answer. */
const publicAnswerBytes = 1_024;

/** Envelopes that all callers get, as representations: with validators, compressed and prepared. */
export interface PublicAnswers {
  /**
   * Makes the answer with an envelope's bytes, of which `digest` is the digest; `vary` names the
   * request fields that have selected it.
   */
  respond(
    envelope: { readonly bytes: () => Buffer; readonly digest: string },
    vary: 'Accept-Language' | undefined,
    request: Pick<ContentRequest, 'method' | 'fields'>,
  ): Reply;
  /** Returns the memory that they use. */
  memory(): CacheUse;
}

/** Caches the newest answers, so that each is compressed only once. */
export function createPublicAnswers(ownFiles: PublicFileReplies): PublicAnswers {
  const latest = new LRUCache<string, PublicFile>({
    maxSize: publicAnswersBytesMax,
    sizeCalculation: ({ bytes }) => bytes.length + publicAnswerBytes,
  });
  return {
    memory: () => cacheUse('public envelopes', latest),
    respond({ bytes, digest }, vary, request) {
      const etag = `"${digest.slice(0, etagCharacters)}"`;
      const key = `${etag}${vary ?? ''}`;
      const fields = vary === undefined ? said : [...said, 'Vary', vary];
      const known = latest.get(key);
      if (known !== undefined) {
        return ownFiles.respond(known, { fields, source: 'svc1' }, request);
      }
      const file = { contentType: 'application/json', bytes: unpooled(bytes()), etag };
      latest.set(key, file);
      // A client can send ever new queries: only an answer that is requested again is compressed.
      const plain = { ...request, fields: { ...request.fields, 'accept-encoding': undefined } };
      return ownFiles.respond(file, { fields, source: 'svc1' }, plain);
    },
  };
}

const etagCharacters = 27;
const said: FieldList = ['Cache-Control', 'private, no-cache', ...pageFields];
