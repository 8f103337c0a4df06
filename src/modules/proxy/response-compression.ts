import { type Reply, discard } from '../../core/http/reply.ts';
import type { ContentRequest, Fields } from '../../core/http/request.ts';
import { isCompressibleReply, withCodings } from '../compression/compressed-reply.ts';
import type { ResponseCompressor } from '../compression/compressors.ts';
import type { FetchRule } from './fetch-plan.ts';
import type { Fetcher } from './fetcher.ts';

/**
 * Compresses fetched content for clients that accept it (RFC 9110 §8.4, §12.5.3): text that its
 * source has sent uncompressed, with status 200 and without `no-transform` (§7.7). Everything else,
 * and what exceeds the limits, is sent unchanged. The cache lies below: it keeps what the source
 * has sent.
 */
export function withCompression(fetch: Fetcher, compressor: ResponseCompressor): Fetcher {
  const respond = async (rule: FetchRule, request: ContentRequest): Promise<Reply> => {
    const reply = await fetch.respond(rule, withSourceTags(request));
    if (isPartByDate(reply, request.fields) && isCompressibleReply(reply, request)) {
      await discard(reply);
      return respond(rule, withFields(request, { 'if-range': undefined, range: undefined }));
    }
    return withCodings(reply, request, compressor);
  };
  return { ...fetch, respond };
}

/**
 * A client that got a compressed answer sends its weak tag in If-Match when it writes, and a weak
 * tag never matches there (RFC 9110 §13.1.1). The request to the source names the source's own
 * strong tag, which stands for the same state of the resource.
 */
function withSourceTags(request: ContentRequest): ContentRequest {
  const ifMatch = request.fields['if-match'];
  if (ifMatch?.includes('W/"') !== true) return request;
  return withFields(request, { 'if-match': ifMatch.replaceAll(quotedTag, '$1') });
}

/** An entity tag (RFC 9110 §8.8.3); `W/"` within its quotes is not the start of another. */
const quotedTag = /(?:W\/)?("[^"]*")/g;

/**
 * Whether an answer is a range that matched by date (If-Range): the client may have the compressed
 * content, and the range is of the uncompressed one (RFC 9110 §8.8.2.2).
 */
function isPartByDate({ status }: Reply, { 'if-range': ifRange }: Fields): boolean {
  return status === 206 && ifRange !== undefined && !ifRange.includes('"');
}

function withFields(request: ContentRequest, changed: Fields): ContentRequest {
  const fields = Object.create(null) as Record<string, string | undefined>;
  Object.assign(fields, request.fields, changed);
  return { ...request, fields };
}
