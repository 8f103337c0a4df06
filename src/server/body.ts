import type { IncomingMessage } from 'node:http';
import { Failure } from '../model/failure.ts';

/**
 * Collects the content of a request, up to a number of bytes. Rejects with `too_large` past it
 * (announced or not), and with `invalid` when the client goes away before the end.
 */
export async function readBody(request: IncomingMessage, bytesMax: number): Promise<Buffer> {
  if (Number(request.headers['content-length'] ?? 0) > bytesMax) throw tooLarge(bytesMax);
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > bytesMax) throw tooLarge(bytesMax);
      chunks.push(chunk);
    }
  } catch (error) {
    if (error instanceof Failure) throw error;
    throw new Failure('invalid', 'The request ended before its content did.', { cause: error });
  }
  return Buffer.concat(chunks);
}

/** Whether a request announces content (RFC 9112 §6.3). */
export function hasBody({ headers }: IncomingMessage): boolean {
  const length = headers['content-length'];
  return headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0');
}

function tooLarge(bytesMax: number): Failure {
  return new Failure('too_large', `The body of an operation may have ${bytesMax} bytes.`);
}
