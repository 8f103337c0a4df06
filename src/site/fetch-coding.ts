import { wantedCodings, type Coding } from '../http/coding.ts';
import { isCompressible } from '../http/compressible.ts';
import {
  replyField,
  replyList,
  withoutFields,
  type Body,
  type FieldList,
  type Reply,
} from '../http/reply.ts';
import type { ContentRequest } from '../http/request.ts';
import { withVary } from '../http/vary.ts';
import { codedBytesMin } from '../model/limits.ts';
import type { CodingPassage } from './coding-passage.ts';
import type { Fetch } from './fetch.ts';

/**
 * Fetched content, compressed on its way to clients that want it so (RFC 9110 §8.4, §12.5.3): text
 * of some length that its source has sent as it is, with status 200 and without `no-transform`
 * (§7.7). Everything else, and what is more than is compressed at a time, goes out as it came. It
 * stands in front of all that keeps or fetches answers, which see what the source has sent.
 */
export function codedFetch(fetch: Fetch, passage: CodingPassage): Fetch {
  return {
    ...fetch,
    async respond(rule, request) {
      const reply = await fetch.respond(rule, withSourceTags(request));
      return isTransformable(reply, request) ? coded(reply, request, passage) : reply;
    },
  };
}

/**
 * A client that read a compressed answer names its weak tag when it writes (RFC 9110 §13.1.1), and
 * If-Match would never hold. The source compares with the tag that it gave itself: it is the same
 * state of the same resource.
 */
function withSourceTags(request: ContentRequest): ContentRequest {
  const ifMatch = request.fields['if-match'];
  if (ifMatch?.includes('W/"') !== true) return request;
  const fields = Object.create(null) as Record<string, string | undefined>;
  Object.assign(fields, request.fields, { 'if-match': ifMatch.replaceAll('W/"', '"') });
  return { ...request, fields };
}

/** What RFC 9530 and its forerunners say of the very bytes that were sent. */
const digests = ['content-digest', 'repr-digest', 'digest', 'content-md5'];

/**
 * Whether an answer, or the 200 that it is a part or a confirmation of, is one that some clients
 * get compressed.
 */
function isTransformable(reply: Reply, { method, fields: asked }: ContentRequest): boolean {
  const { status, fields, body } = reply;
  if (method !== 'GET' && method !== 'HEAD') return false;
  if (status !== 200 && status !== 206 && status !== 304) return false;
  const type = replyField({ fields }, 'content-type');
  const isUnsaid = status !== 200 && (type === undefined || /^multipart\//i.test(type));
  if (!isUnsaid && !isCompressible(type)) return false;
  if ((replyList(fields, 'content-encoding') ?? 'identity') !== 'identity') return false;
  if (forbidsTransform(replyList(fields, 'cache-control'))) return false;
  if (forbidsTransform(asked['cache-control'])) return false;
  if (digests.some((name) => replyField({ fields }, name) !== undefined)) return false;
  return status !== 200 || (lengthOf(body, fields) ?? Infinity) >= codedBytesMin;
}

function forbidsTransform(cacheControl: string | undefined): boolean {
  return cacheControl !== undefined && /(?:^|[\s,])no-transform(?:[\s,]|$)/i.test(cacheControl);
}

function lengthOf(body: Body, fields: FieldList): number | undefined {
  if (body.kind === 'bytes') return body.bytes.length;
  const length = replyField({ fields }, 'content-length');
  return length === undefined ? undefined : Number(length);
}

async function coded(
  reply: Reply,
  { fields: asked }: ContentRequest,
  passage: CodingPassage,
): Promise<Reply> {
  const { status, body } = reply;
  const plain = { ...reply, fields: withVary(reply.fields, 'Accept-Encoding') };
  if (status === 304) return { ...plain, fields: confirmed(plain.fields, asked['if-none-match']) };
  const [coding] = wantedCodings(asked['accept-encoding']);
  if (status !== 200 || coding === undefined) return plain;
  switch (body.kind) {
    case 'none':
      return { ...plain, fields: codedFields(plain.fields, coding) };
    case 'stream': {
      const stream = passage.stream(body.stream, coding);
      if (stream === undefined) return plain;
      return {
        ...plain,
        fields: codedFields(plain.fields, coding),
        body: { kind: 'stream', stream, bytesLength: undefined },
      };
    }
    case 'bytes': {
      const bytes = await passage.bytes(body.bytes, coding);
      if (bytes === undefined) return plain;
      const fields = [...codedFields(plain.fields, coding), 'Content-Length', String(bytes.length)];
      return { ...plain, fields, body: { kind: 'bytes', bytes } };
    }
    case 'file':
      return plain;
  }
}

/**
 * The fields of an answer that was compressed on its way: neither its length nor parts of it are
 * the source's any more, and its tag says that it has the same meaning, not the same bytes (RFC
 * 9110 §8.8.1).
 */
function codedFields(fields: FieldList, coding: Coding): FieldList {
  const kept = withoutFields(fields, 'content-length', 'content-encoding', 'accept-ranges');
  return [...weakened(kept), 'Content-Encoding', coding];
}

/** A 304 names the tag that the client knows (RFC 9110 §15.4.5): the weak one, if it sent that. */
function confirmed(fields: FieldList, ifNoneMatch: string | undefined): FieldList {
  const etag = replyField({ fields }, 'etag');
  const isKnownWeak = etag !== undefined && ifNoneMatch?.includes(`W/${etag}`) === true;
  return isKnownWeak ? weakened(fields) : fields;
}

function weakened(fields: FieldList): FieldList {
  return fields.map((value, at) => {
    const isStrongTag = fields[at - 1]?.toLowerCase() === 'etag' && at % 2 === 1;
    return isStrongTag && !value.startsWith('W/') ? `W/${value}` : value;
  });
}
