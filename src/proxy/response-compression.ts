import type { Readable } from 'node:stream';
import { wantedCodings, type Coding } from '../http/coding.ts';
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
 * Fetched content, compressed on its way to clients that want it so (RFC 9110 §8.4, §12.5.3): text
 * of some length that its source has sent as it is, with status 200 and without `no-transform`
 * (§7.7). Everything else, and what is more than is compressed at a time, goes out as it came. It
 * stands in front of all that keeps or fetches answers, which see what the source has sent.
 */
export function withCompression(fetch: Fetcher, passage: ResponseCompressor): Fetcher {
  const respond = async (rule: FetchRule, request: ContentRequest): Promise<Reply> => {
    const reply = await fetch.respond(rule, withSourceTags(request));
    if (isPartByDate(reply, request.fields) && isCompressibleReply(reply, request)) {
      await discard(reply);
      return respond(rule, withFields(request, { 'if-range': undefined, range: undefined }));
    }
    return uncompressedReply(reply, request) ?? compressReply(reply, request, passage);
  };
  return { ...fetch, respond };
}

/**
 * A client that read a compressed answer names its weak tag when it writes (RFC 9110 §13.1.1), and
 * If-Match would never hold. The source compares with the tag that it gave itself: it is the same
 * state of the same resource.
 */
function withSourceTags(request: ContentRequest): ContentRequest {
  const ifMatch = request.fields['if-match'];
  if (ifMatch?.includes('W/"') !== true) return request;
  return withFields(request, { 'if-match': ifMatch.replaceAll(quotedTag, '$1') });
}

/** A tag whose quotes enclose all that may look like the beginning of another (RFC 9110 §8.8.3). */
const quotedTag = /(?:W\/)?("[^"]*")/g;

/**
 * Whether an answer is a part that was asked for by the date of what the client has: that may be
 * compressed, and the part is not (RFC 9110 §8.8.2.2).
 */
function isPartByDate({ status }: Reply, { 'if-range': ifRange }: Fields): boolean {
  return status === 206 && ifRange !== undefined && !ifRange.includes('"');
}

function withFields(request: ContentRequest, changed: Fields): ContentRequest {
  const fields = Object.create(null) as Record<string, string | undefined>;
  Object.assign(fields, request.fields, changed);
  return { ...request, fields };
}

/**
 * Whether an answer, or the 200 that it is a part or a confirmation of, is one that some clients
 * get compressed.
 */
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
  // A confirmation need not name the type, and several parts name that of each.
  return type === undefined || /^multipart\//i.test(type) || isCompressible(type);
}

/** What the source says of the content that it sends. */
interface ContentFields {
  readonly type: string | undefined;
  /** In bytes, as it is written. */
  readonly length: string | undefined;
  /** Whether it has to stay as it is. */
  readonly isFixed: boolean;
}

/** What RFC 9530 and its forerunners say of the very bytes that are sent. */
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

/** An answer as it goes out to whoever does not want it compressed; undefined where it is. */
function uncompressedReply(reply: Reply, request: ContentRequest): Reply | undefined {
  if (!isCompressibleReply(reply, request)) return reply;
  const { status } = reply;
  const asked = request.fields;
  const fields = withVary(reply.fields, 'Accept-Encoding');
  if (status === 304)
    return { ...reply, fields: notModifiedFields(fields, asked['if-none-match']) };
  if (status === 200 && wantedCodings(asked['accept-encoding']).length > 0) return undefined;
  return { ...reply, fields };
}

/** Compresses an answer, as far as that can be done now. */
async function compressReply(
  reply: Reply,
  { fields: asked }: ContentRequest,
  passage: ResponseCompressor,
): Promise<Reply> {
  const { body } = reply;
  const plain = { ...reply, fields: withVary(reply.fields, 'Accept-Encoding') };
  const [coding] = wantedCodings(asked['accept-encoding']);
  if (coding === undefined) return plain;
  switch (body.kind) {
    case 'none':
      return { ...plain, fields: compressedFields(plain.fields, coding) };
    case 'stream':
    case 'file': {
      const stream = passage.stream(streamOf(body), coding);
      if (stream === undefined) return plain;
      return {
        ...plain,
        fields: compressedFields(plain.fields, coding),
        body: { kind: 'stream', stream, bytesLength: undefined },
      };
    }
    case 'bytes': {
      const bytes = await passage.bytes(body.bytes, coding);
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

/** Content as it is read; that of a file is closed by whoever begins to read it. */
function streamOf(body: Body & { readonly kind: 'stream' | 'file' }): Readable {
  return body.kind === 'stream' ? body.stream : fileStream(body.file, body.bytesLength);
}

/**
 * The fields of an answer that was compressed on its way: neither its length nor parts of it are
 * the source's any more, and its tag says that it has the same meaning, not the same bytes (RFC
 * 9110 §8.8.1).
 */
function compressedFields(fields: FieldList, coding: Coding): FieldList {
  const kept = withoutFields(fields, 'content-length', 'content-encoding', 'accept-ranges');
  return [...withWeakTag(kept), 'Content-Encoding', coding];
}

/**
 * A 304 names the tag that the client knows (RFC 9110 §15.4.5), the weak one, if it sent that; the
 * length is that of what the client may never have seen (§8.6).
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
