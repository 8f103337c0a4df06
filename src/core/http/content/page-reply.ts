import { KIB } from '../../values/units.ts';
import { type Body, type Part, type Reply, noBody } from '../reply.ts';
import { type Representation, select } from '../representation/represent.ts';
import type { ContentRequest } from '../request.ts';
import { bytesSource } from './file-source.ts';

/** Up to this size, the server copies several ranges of a page into one buffer. */
const partsCopiedBytesMax = 64 * KIB;

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

/** A page with what all answers with it have from their source. */
export interface PageWithSource extends Page {
  readonly answered: Answered;
}

/** Makes the answer to a request for a page, with its preconditions and ranges evaluated. */
export function replyWithPage(
  { representation, bytes, answered: { source, complete } }: PageWithSource,
  request: Pick<ContentRequest, 'method' | 'fields'>,
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
  const pieces = parts.map((one) => {
    if (Buffer.isBuffer(one)) return one;
    // All answers with the whole page share its buffer (server/websocket/packet.ts).
    const isWhole = one.first === 0 && one.last === bytes.length - 1;
    return isWhole ? bytes : bytes.subarray(one.first, one.last + 1);
  });
  const [first, ...others] = pieces;
  if (first === undefined) return noBody;
  return { kind: 'bytes', bytes: others.length === 0 ? first : Buffer.concat(pieces) };
}
