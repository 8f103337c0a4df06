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

/** What all answers with a page have from their source. */
export interface Answered {
  /** As in `Reply`. */
  readonly source: string;
  /** Adds the source's own fields to an answer, whatever its status is. */
  readonly complete?: (reply: Reply) => Reply;
}

/** A page with the answer to a plain GET made in advance. */
export interface PreparedPage extends Page {
  readonly answered: Answered;
  /** The answer to a GET without preconditions or ranges. */
  readonly whole: Reply;
}

/** Makes the answer to a plain GET of a page in advance. */
export function preparePage({ representation, bytes }: Page, answered: Answered): PreparedPage {
  const whole = replyWithBytes({ representation, bytes }, { method: 'GET', fields: {} }, answered);
  return { representation, bytes, answered, whole };
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
    : replyWithBytes(page, request, page.answered);
}

/**
 * Makes the answer to a request for a page in memory, with its preconditions and ranges evaluated.
 */
function replyWithBytes(
  { representation, bytes }: Page,
  request: Pick<ContentRequest, 'method' | 'fields'>,
  { source, complete }: Answered,
): Reply {
  const { status, fields, parts, bytesLength } = select(representation, request);
  const reply: Reply = { status, fields, body: bodyOf(bytes, parts, bytesLength), source };
  return complete === undefined ? reply : complete(reply);
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
