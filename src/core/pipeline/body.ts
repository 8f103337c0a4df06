import type { Allocation } from '../fair/shared-limit.ts';
import { requireIntactBody } from '../http/content/content.ts';
import type { ReadHead } from '../http/reading/head.ts';
import type { Fields } from '../http/request.ts';
import { heldPieceBytes, unreadBodyBytesMax } from '../server/limits.ts';
import { Failure, failureFrom } from '../values/failure.ts';
import type { RequestBody } from './exchange.ts';

/** Content that another server reads. */
const passedOn = new WeakSet<RequestBody>();

/**
 * Marks content that goes to another server: it may take as long as its client sends, like an
 * upload over a slow line or a stream of gRPC.
 */
export function passContentOn(body: RequestBody): void {
  passedOn.add(body);
}

/** Whether content is limited in its pauses, and not in its whole time. */
export function isPassedOn(body: RequestBody | undefined): boolean {
  return body !== undefined && passedOn.has(body);
}

/** The content of a request, and its fields by lower-case name. */
interface Sending {
  readonly body: RequestBody | undefined;
  readonly fields: Fields;
}

const noContent: Buffer = Buffer.alloc(0);

/**
 * Reads the content of a request, up to `bytesMax`, and grows `allocation` by it. Rejects with
 * `too_large` past the maximum (announced or not), with the failure of the allocation, and with
 * `invalid` if the client closes the connection before the end or sends malformed content. The
 * connection stays open for the answer.
 */
export function readBody(
  { body, fields }: Sending,
  bytesMax: number,
  allocation?: Allocation,
): Promise<Buffer> {
  if (body === undefined) return Promise.resolve(noContent);
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const stop = (failure: Failure): void => {
      body.off('data', take);
      body.pause();
      reject(failure);
    };
    const take = (chunk: Buffer): void => {
      bytes += chunk.length;
      try {
        if (bytes > bytesMax) throw tooLarge(bytesMax);
        allocation?.grow(chunk.length + heldPieceBytes);
        chunks.push(chunk);
      } catch (thrown) {
        stop(failureFrom(thrown));
      }
    };
    const failed = (error?: Error): void => {
      stop(
        error instanceof Failure
          ? error
          : new Failure('invalid', 'The request ended before its content was complete.', {
              cause: error,
            }),
      );
    };
    requireIntactBody(body);
    if (lengthOf(fields) > bytesMax) throw tooLarge(bytesMax);
    body.on('error', failed).once('close', failed);
    body.once('end', () => {
      resolve(Buffer.concat(chunks));
    });
    body.on('data', take);
  });
}

/**
 * Throws `invalid` for compressed content (RFC 9110 §8.4): the limit of its length would not bound
 * the decoded length.
 */
export function requirePlain(fields: Fields): void {
  const coding = fields['content-encoding'];
  if (coding === undefined || /^(?:identity)?$/i.test(coding)) return;
  throw new Failure('invalid', 'The body of an operation has to be sent as it is, uncompressed.', {
    field: 'content-encoding',
    status: 415,
    limit: 'content_coding',
  });
}

/** Whether a request announces content (RFC 9112 §6.3). */
export function hasBody(fields: Framing): boolean {
  const length = fields['content-length'];
  return fields['transfer-encoding'] !== undefined || (length !== undefined && length !== '0');
}

/** The fields about the content of a request, by lower-case name. */
type Framing = Readonly<
  Partial<Record<'content-length' | 'transfer-encoding', string | undefined>>
>;

function lengthOf(fields: Framing): number {
  return Number(fields['content-length'] ?? 0);
}

function tooLarge(bytesMax: number): Failure {
  return new Failure('too_large', `The body of an operation may have ${bytesMax} bytes.`, {
    limit: 'content_size',
  });
}

/**
 * Whether the connection can continue after a request with unread content: if the content is short
 * and certain to arrive.
 */
export function canDiscardBody({ expect, framing }: Pick<ReadHead, 'expect' | 'framing'>): boolean {
  return expect === undefined && framing !== 'chunked' && framing <= unreadBodyBytesMax;
}
