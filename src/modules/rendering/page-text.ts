import { createHash } from 'node:crypto';
import { parseMediaType } from '../../core/http/representation/mediatype.ts';
import {
  discard,
  replyField,
  withoutFields,
  type FieldList,
  type Reply,
} from '../../core/http/reply.ts';
import type { ContentRequest, Fields } from '../../core/http/request.ts';
import { pageTextBytesMax } from './limits.ts';

/** The text of a generic page. */
export interface PageText {
  readonly text: string;
  /** A text that changes with the page. */
  readonly tag: string;
  readonly status: number;
  /** The fields that the page adds to its answers. */
  readonly fields: FieldList;
  readonly isReusable: boolean;
}

/** A page without a text that can be rendered: the reply is the page. */
interface OtherPage {
  readonly text: undefined;
  readonly reply: Reply;
}

/** The fields of a request that choose a part, a coding or a condition. */
const choosingFields: ReadonlySet<string> = new Set([
  ...['accept-encoding', 'range', 'if-range', 'if-match', 'if-none-match'],
  ...['if-modified-since', 'if-unmodified-since'],
]);

/** The fields of a page that describe its own bytes. */
const describingFields = [
  ...['content-type', 'content-length', 'content-encoding', 'content-range', 'accept-ranges'],
  ...['etag', 'last-modified', 'date', 'age', 'expires', 'cache-control', 'content-disposition'],
];

/**
 * Reads the generic page of a request. A page that is no HTML in UTF-8, too large, or not the
 * expected one (it has another status than its rule) is returned as its reply.
 */
export async function readPageText(
  request: ContentRequest,
  open: (request: ContentRequest) => Promise<Reply>,
): Promise<PageText | OtherPage> {
  const whole = { ...request, method: 'GET', fields: plainFields(request.fields) };
  const reply = await open(whole);
  if (!isHtml(reply) || reply.body.kind === 'none') {
    await discard(reply);
    return { text: undefined, reply: await open(request) };
  }
  const bytes = await contentOf(reply);
  if (bytes === undefined) return { text: undefined, reply: await open(request) };
  const fields = withoutFields(reply.fields, ...describingFields);
  const hash = createHash('sha256')
    .update(`${reply.status}\n${fields.join('\n')}\n`)
    .update(bytes);
  return {
    text: bytes.toString(),
    tag: hash.digest('base64url').slice(0, 22),
    status: reply.status,
    fields,
    isReusable: reply.isReusable === true && reply.isCurrent === undefined,
  };
}

function plainFields(fields: Fields): Fields {
  const others = Object.entries(fields).filter(([name]) => !choosingFields.has(name));
  return Object.assign(Object.create(null) as Record<string, string>, Object.fromEntries(others));
}

function isHtml(reply: Reply): boolean {
  if (replyField(reply, 'content-encoding') !== undefined) return false;
  const media = parseMediaType(replyField(reply, 'content-type') ?? '');
  const charset = media?.parameters.get('charset') ?? 'utf-8';
  return media?.type === 'text/html' && /^utf-?8$/i.test(charset);
}

/** The content of a reply; undefined if it is too large. It closes the file or stream. */
async function contentOf({ body }: Reply): Promise<Buffer | undefined> {
  switch (body.kind) {
    case 'none':
      return Buffer.alloc(0);
    case 'bytes':
      return body.bytes.length > pageTextBytesMax ? undefined : body.bytes;
    case 'file': {
      const { file, bytesLength } = body;
      try {
        if (bytesLength > pageTextBytesMax) return undefined;
        const bytes = Buffer.alloc(bytesLength);
        for (let at = 0; at < bytesLength;) {
          const count = await file.read(bytes.subarray(at), at);
          if (count === 0) return undefined;
          at += count;
        }
        return bytes;
      } finally {
        await file.close();
      }
    }
    case 'stream': {
      const chunks: Buffer[] = [];
      let bytes = 0;
      for await (const chunk of body.stream as AsyncIterable<Buffer>) {
        bytes += chunk.length;
        if (bytes > pageTextBytesMax) return undefined;
        chunks.push(chunk);
      }
      return Buffer.concat(chunks);
    }
  }
}
