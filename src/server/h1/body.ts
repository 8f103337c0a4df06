import type { IncomingMessage, ServerResponse } from 'node:http';
import { requireWhole } from '../../http/broken-content.ts';
import { Failure, failureFrom } from '../../model/failure.ts';
import { isReadable, type RequestMessage } from '../http-message.ts';
import { heldPieceBytes, unreadBodyBytesMax } from '../limits.ts';
import type { Allocation } from '../../model/shared-limit.ts';

/** Requests whose content another server reads. */
const passedOn = new WeakSet<object>();

/**
 * Marks a request whose content goes to another server: it may take as long as its client sends,
 * like an upload over a slow line or a stream of gRPC.
 */
export function passContentOn(request: object): void {
  passedOn.add(request);
}

/** Whether the content of a request is limited in its pauses, and not in its whole time. */
export function isPassedOn(request: object): boolean {
  return passedOn.has(request);
}

/**
 * Reads the content of a request, up to `bytesMax`, and grows `allocation` by it. Rejects with
 * `too_large` past the maximum (announced or not), with the failure of the allocation, and with
 * `invalid` if the client closes the connection before the end or sends malformed content. The
 * connection stays open for the answer.
 */
export function readBody(
  request: IncomingMessage,
  bytesMax: number,
  allocation?: Allocation,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const stop = (failure: Failure): void => {
      request.off('data', take);
      request.pause();
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
    requireWhole(request);
    if (Number(request.headers['content-length'] ?? 0) > bytesMax) throw tooLarge(bytesMax);
    request.on('error', failed).once('close', failed);
    request.once('end', () => {
      resolve(Buffer.concat(chunks));
    });
    request.on('data', take);
  });
}

/**
 * Throws `invalid` for compressed content (RFC 9110 §8.4): the limit of its length would not bound
 * the decoded length.
 */
export function requirePlain({ headers }: IncomingMessage): void {
  const coding = headers['content-encoding'];
  if (coding === undefined || /^(?:identity)?$/i.test(coding)) return;
  throw new Failure('invalid', 'The body of an operation has to be sent as it is, uncompressed.', {
    field: 'content-encoding',
    status: 415,
    limit: 'content_coding',
  });
}

/** Whether a request announces content (RFC 9112 §6.3). */
export function hasBody(message: RequestMessage): message is IncomingMessage {
  if (!isReadable(message)) return false;
  const { headers } = message;
  const length = headers['content-length'];
  return headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0');
}

function tooLarge(bytesMax: number): Failure {
  return new Failure('too_large', `The body of an operation may have ${bytesMax} bytes.`, {
    limit: 'content_size',
  });
}

/** Sends 100 Continue (RFC 9110 §10.1.1) when the content is read, and not earlier. */
export function continueOnRead(request: IncomingMessage, response: ServerResponse): void {
  request.once('resume', () => {
    if (!response.headersSent && !response.destroyed) response.writeContinue();
  });
}

/**
 * Whether the connection can continue after a request with unread content: if the content is short
 * and certain to arrive.
 */
export function canDiscardBody({ headers }: IncomingMessage): boolean {
  return (
    headers.expect === undefined &&
    headers['transfer-encoding'] === undefined &&
    Number(headers['content-length'] ?? 0) <= unreadBodyBytesMax
  );
}
