import type { Readable } from 'node:stream';
import { preferredCodings, type Coding } from '../http/coding.ts';
import { isCompressible } from '../http/compressible.ts';
import {
  discard,
  replyField,
  withoutFields,
  type Body,
  type FieldList,
  type Reply,
} from '../http/reply.ts';
import type { ContentRequest, Fields } from '../http/request.ts';
import { withVary } from '../http/vary.ts';
import { compressBytesMin } from '../compression/limits.ts';
import type { ResponseCompressor } from '../compression/response-compressor.ts';
import { fileStream } from '../http/file-source.ts';
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
    return uncompressedReply(reply, request) ?? compressReply(reply, request, compressor);
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

/** Whether some clients get an answer compressed, or the 200 that a 206 or 304 belongs to. */
function isCompressibleReply(
  { status, fields, body }: Reply,
  { method, fields: asked }: ContentRequest,
): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false;
  if (status !== 200 && status !== 206 && status !== 304) return false;
  const { type, length, isFixed } = readContentFields(fields);
  if (isFixed || forbidsTransform(asked['cache-control'])) return false;
  if (status === 200) {
    const bytesLength = body.kind === 'bytes' ? body.bytes.length : Number(length ?? Infinity);
    return bytesLength >= compressBytesMin && isCompressible(type);
  }
  // A 304 need not have Content-Type, and multipart/byteranges names the type of each part inside.
  return type === undefined || /^multipart\//i.test(type) || isCompressible(type);
}

/** The fields of the source that decide about compression. */
interface ContentFields {
  readonly type: string | undefined;
  /** Content-Length, unparsed. */
  readonly length: string | undefined;
  /** Whether the content must stay unchanged. */
  readonly isFixed: boolean;
}

/** Digests of the bytes that are sent (RFC 9530 and its predecessors). */
const digest = /^(?:content-digest|repr-digest|digest|content-md5)$/i;

function readContentFields(fields: FieldList): ContentFields {
  let type: string | undefined;
  let length: string | undefined;
  let isFixed = false;
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const [name = '', value = ''] = [fields[at]?.toLowerCase(), fields[at + 1]];
    if (name === 'content-type') type ??= value;
    else if (name === 'content-length') length = value;
    else if (name === 'content-encoding') isFixed ||= value.toLowerCase() !== 'identity';
    else if (name === 'cache-control') isFixed ||= forbidsTransform(value);
    else if (name === 'trailer') isFixed ||= value.split(/[\s,]+/).some((one) => digest.test(one));
    else isFixed ||= digest.test(name);
  }
  return { type, length, isFixed };
}

function forbidsTransform(cacheControl: string | undefined): boolean {
  return cacheControl !== undefined && /(?:^|[\s,])no-transform(?:[\s,]|$)/i.test(cacheControl);
}

/** The reply if it is not to be compressed; undefined if it is. */
function uncompressedReply(reply: Reply, request: ContentRequest): Reply | undefined {
  if (!isCompressibleReply(reply, request)) return reply;
  const { status } = reply;
  const asked = request.fields;
  const fields = withVary(reply.fields, 'Accept-Encoding');
  if (status === 304)
    return { ...reply, fields: notModifiedFields(fields, asked['if-none-match']) };
  if (status === 200 && preferredCodings(asked['accept-encoding']).length > 0) return undefined;
  return { ...reply, fields };
}

/** Compresses an answer, or leaves it uncompressed if too many are being compressed. */
async function compressReply(
  reply: Reply,
  { fields: asked }: ContentRequest,
  compressor: ResponseCompressor,
): Promise<Reply> {
  const { body } = reply;
  const plain = { ...reply, fields: withVary(reply.fields, 'Accept-Encoding') };
  const [coding] = preferredCodings(asked['accept-encoding']);
  if (coding === undefined) return plain;
  switch (body.kind) {
    case 'none':
      return { ...plain, fields: compressedFields(plain.fields, coding) };
    case 'stream':
    case 'file': {
      const stream = compressor.stream(streamOf(body), coding);
      if (stream === undefined) return plain;
      return {
        ...plain,
        fields: compressedFields(plain.fields, coding),
        body: { kind: 'stream', stream, bytesLength: undefined },
      };
    }
    case 'bytes': {
      const bytes = await compressor.bytes(body.bytes, coding);
      if (bytes === undefined) return plain;
      const fields = [
        ...compressedFields(plain.fields, coding),
        'Content-Length',
        String(bytes.length),
      ];
      return { ...plain, fields, body: { kind: 'bytes', bytes } };
    }
  }
}

/** Content as a stream; reading a file to its end closes it. */
function streamOf(body: Body & { readonly kind: 'stream' | 'file' }): Readable {
  return body.kind === 'stream' ? body.stream : fileStream(body.file, body.bytesLength);
}

/**
 * The fields of a compressed answer: without the source's length and ranges, and with a weak tag,
 * since the bytes differ but the meaning is the same (RFC 9110 §8.8.1).
 */
function compressedFields(fields: FieldList, coding: Coding): FieldList {
  const kept = withoutFields(fields, 'content-length', 'content-encoding', 'accept-ranges');
  return [...withWeakTag(kept), 'Content-Encoding', coding];
}

/**
 * The fields of a 304: with the weak tag if the client sent that (RFC 9110 §15.4.5), and without
 * Content-Length, which may be that of the uncompressed content (§8.6).
 */
function notModifiedFields(said: FieldList, ifNoneMatch: string | undefined): FieldList {
  const fields = withoutFields(said, 'content-length');
  const etag = replyField({ fields }, 'etag');
  const isKnownWeak = etag !== undefined && ifNoneMatch?.includes(`W/${etag}`) === true;
  return isKnownWeak ? withWeakTag(fields) : fields;
}

function withWeakTag(fields: FieldList): FieldList {
  return fields.map((value, at) => {
    const isStrongTag = fields[at - 1]?.toLowerCase() === 'etag' && at % 2 === 1;
    return isStrongTag && !value.startsWith('W/') ? `W/${value}` : value;
  });
}
