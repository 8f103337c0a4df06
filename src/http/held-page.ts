import { noBody, type Body, type Part, type Reply } from './reply.ts';
import { asksForLess, select, type Representation } from './represent.ts';
import type { ContentRequest } from './request.ts';
import { partsCopiedBytesMax } from './limits.ts';
import { bytesSource } from './file-source.ts';

/** A representation with all its bytes in memory. */
export interface Page {
  readonly representation: Representation;
  readonly bytes: Buffer;
}

/** A page that is ready to be sent, as often as it is asked for. */
export interface HeldPage extends Page {
  /** Who answers with it, as a Reply names it. */
  readonly source: string;
  /** The answer to a GET without preconditions and ranges, made once. */
  readonly whole: Reply;
}

/** Makes a page ready to be sent. */
export function holdPage({ representation, bytes }: Page, source: string): HeldPage {
  const whole = sendBytes({ representation, bytes }, { method: 'GET', fields: {} }, source);
  return { representation, bytes, source, whole };
}

/** The answer of a held page, as the request's preconditions and ranges ask for it. */
export function sendHeld(
  page: HeldPage,
  request: Pick<ContentRequest, 'method' | 'fields'>,
): Reply {
  return request.method === 'GET' && !asksForLess(request.fields)
    ? page.whole
    : sendBytes(page, request, page.source);
}

/**
 * The answer that sends a representation held in memory, as the request's preconditions and ranges
 * ask for it.
 */
export function sendBytes(
  { representation, bytes }: Page,
  request: Pick<ContentRequest, 'method' | 'fields'>,
  source: string,
): Reply {
  const { status, fields, parts, bytesLength } = select(representation, request);
  return { status, fields, body: bodyOf(bytes, parts, bytesLength), source };
}

function bodyOf(bytes: Buffer, parts: readonly Part[], bytesLength: number): Body {
  // Each client that asks for several parts would hold a copy of its own.
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
