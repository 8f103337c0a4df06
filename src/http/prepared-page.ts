import { noBody, type Body, type Part, type Reply } from './reply.ts';
import { hasPreconditionOrRange, select, type Representation } from './represent.ts';
import type { ContentRequest } from './request.ts';
import { partsCopiedBytesMax } from './limits.ts';
import { bytesSource } from './file-source.ts';

/** A representation with all its bytes in memory. */
export interface Page {
  readonly representation: Representation;
  readonly bytes: Buffer;
}

/** A page with the answer to a plain GET made in advance. */
export interface PreparedPage extends Page {
  /** The source of its answers, as in `Reply`. */
  readonly source: string;
  /** The answer to a GET without preconditions or ranges. */
  readonly whole: Reply;
}

/** Makes the answer to a plain GET of a page in advance. */
export function preparePage({ representation, bytes }: Page, source: string): PreparedPage {
  const whole = replyWithBytes({ representation, bytes }, { method: 'GET', fields: {} }, source);
  return { representation, bytes, source, whole };
}

/**
 * Returns the answer to a request for a prepared page: the one made in advance, or one for its
 * preconditions and ranges.
 */
export function replyWithPage(
  page: PreparedPage,
  request: Pick<ContentRequest, 'method' | 'fields'>,
): Reply {
  return request.method === 'GET' && !hasPreconditionOrRange(request.fields)
    ? page.whole
    : replyWithBytes(page, request, page.source);
}

/**
 * Makes the answer to a request for a page in memory, with its preconditions and ranges evaluated.
 */
export function replyWithBytes(
  { representation, bytes }: Page,
  request: Pick<ContentRequest, 'method' | 'fields'>,
  source: string,
): Reply {
  const { status, fields, parts, bytesLength } = select(representation, request);
  return { status, fields, body: bodyOf(bytes, parts, bytesLength), source };
}

function bodyOf(bytes: Buffer, parts: readonly Part[], bytesLength: number): Body {
  // Over this size, the copied ranges of each client would take too much memory.
  if (parts.length > 1 && bytesLength > partsCopiedBytesMax) {
    return { kind: 'file', file: bytesSource(bytes), parts, bytesLength };
  }
  const pieces = parts.map((one) =>
    Buffer.isBuffer(one) ? one : bytes.subarray(one.first, one.last + 1),
  );
  const [first, ...others] = pieces;
  if (first === undefined) return noBody;
  return { kind: 'bytes', bytes: others.length === 0 ? first : Buffer.concat(pieces) };
}
