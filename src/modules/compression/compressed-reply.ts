import type { Readable } from 'node:stream';
import { fileStream } from '../../core/http/content/file-source.ts';
import {
  type Body,
  type FieldList,
  type Reply,
  replyField,
  withVary,
  withoutFields,
} from '../../core/http/reply.ts';
import { isCompressible } from '../../core/http/representation/mediatype.ts';
import { type Coding, preferredCodings } from '../../core/http/representation/negotiation.ts';
import type { ContentRequest } from '../../core/http/request.ts';
import type { ResponseCompressor } from './compressors.ts';
import { compressBytesMin } from './limits.ts';

/** The parts of a request that decide about compression. */
type CodedRequest = Pick<ContentRequest, 'method' | 'fields'>;

/** A request whose answer may be compressed, in one of the places that clients share. */
type CompressedRequest = CodedRequest & Pick<ContentRequest, 'address'>;

/**
 * The answer in the coding that the client prefers (RFC 9110 §8.4, §12.5.3), compressed while it is
 * sent; unchanged if it cannot be compressed, or if too many are being compressed.
 */
export function withCodings(
  reply: Reply,
  request: CompressedRequest,
  compressor: ResponseCompressor,
): Reply | Promise<Reply> {
  return uncompressedReply(reply, request) ?? compressReply(reply, request, compressor);
}

/** Whether some clients get an answer compressed, or the 200 that a 206 or 304 belongs to. */
export function isCompressibleReply(
  { status, fields, body }: Reply,
  { method, fields: asked }: CodedRequest,
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

/** Whether a Cache-Control field forbids to change the content (RFC 9110 §7.7). */
export function forbidsTransform(cacheControl: string | undefined): boolean {
  return cacheControl !== undefined && /(?:^|[\s,])no-transform(?:[\s,]|$)/i.test(cacheControl);
}

/** The reply if it is not to be compressed; undefined if it is. */
function uncompressedReply(reply: Reply, request: CodedRequest): Reply | undefined {
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
  { fields: asked, address }: CompressedRequest,
  compressor: ResponseCompressor,
): Promise<Reply> {
  const { body } = reply;
  const plain = { ...reply, fields: withVary(reply.fields, 'Accept-Encoding') };
  const [coding] = preferredCodings(asked['accept-encoding']);
  if (coding === undefined) return plain;
  const client = { keyId: undefined, address };
  switch (body.kind) {
    case 'none':
      return { ...plain, fields: compressedFields(plain.fields, coding) };
    case 'stream':
    case 'file': {
      const stream = compressor.stream(streamOf(body), coding, client);
      if (stream === undefined) return plain;
      return {
        ...plain,
        fields: compressedFields(plain.fields, coding),
        body: { kind: 'stream', stream, bytesLength: undefined },
      };
    }
    case 'bytes': {
      const bytes = await compressor.bytes(body.bytes, coding, client);
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
