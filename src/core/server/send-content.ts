import type { Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Sharer } from '../fair/shared-limit.ts';
import type { Body, FieldList, Part } from '../http/reply.ts';
import type { Sent } from '../pipeline/exchange.ts';
import type { ClientAddress } from '../values/network/peer.ts';
import { copyRange } from './copy-file.ts';
import { writeAll } from './h1/pieces.ts';

/** The longest time that the head of an answer waits for streamed content to begin. */
const answerHeadHeldMs = 5;

/** What a transport does besides writing the content of an answer. */
export interface ContentWays {
  /** Sends the head now; content follows later. */
  readonly sendHead: () => void;
  /**
   * Sends the trailer fields (RFC 9110 §6.5) at the end; called before the first write. They are
   * known at the end of `stream`.
   */
  readonly trailWith: (trailers: () => FieldList, stream: Readable) => void;
  /** To be called when the source has failed, before the connection ends. */
  readonly failed: () => void;
}

/**
 * Writes content from a file or a stream behind a head, as fast as the client reads. `address` is
 * that of the client, whose turns it takes.
 */
export function sendContent(
  to: Writable,
  ways: ContentWays,
  body: Extract<Body, { readonly kind: 'file' | 'stream' }>,
  address: ClientAddress,
): Promise<Sent> {
  if (body.kind === 'file') return sendFile(to, body, { keyId: undefined, address });
  return sendStream(to, ways, body);
}

/**
 * Waits for the first byte of streamed content, or for its end, but no longer than
 * answerHeadHeldMs. Rejects with an error of the stream in that time: no byte of the answer is sent
 * yet, so another answer can replace it.
 */
export async function contentBegun(stream: Readable): Promise<void> {
  if (stream.readableLength > 0 || stream.readableEnded) return;
  if (!stream.destroyed) {
    const { promise, resolve } = Promise.withResolvers<undefined>();
    const done = (): void => {
      resolve(undefined);
    };
    const timer = setTimeout(done, answerHeadHeldMs);
    stream.once('readable', done).once('end', done).once('error', done).once('close', done);
    await promise;
    clearTimeout(timer);
    stream.off('readable', done).off('end', done).off('error', done).off('close', done);
  }
  if (stream.errored !== null) throw stream.errored;
}

async function sendStream(
  to: Writable,
  { sendHead, trailWith, failed }: ContentWays,
  { stream, trailers }: Extract<Body, { readonly kind: 'stream' }>,
): Promise<Sent> {
  let bytes = 0;
  if (trailers !== undefined) trailWith(trailers, stream);
  // A client of an event stream needs the head before the first event.
  if (stream.readableLength === 0 && !stream.readableEnded) sendHead();
  stream.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
  });
  // Ahead of the pipeline, which closes the connection.
  stream.once('error', failed);
  try {
    await pipeline(stream, to);
    return { bytes, cut: false };
  } catch {
    to.destroy();
    return { bytes, cut: true };
  }
}

async function sendFile(
  to: Writable,
  { file, parts }: Extract<Body, { readonly kind: 'file' }>,
  client: Sharer,
): Promise<Sent> {
  let bytes = 0;
  try {
    for (const part of parts) {
      const sent = Buffer.isBuffer(part)
        ? await writeAll(to, part)
        : await copyRange(to, { file, from: part.first, to: part.last + 1, client });
      bytes += sent;
      if (sent < lengthOf(part)) {
        to.destroy();
        return { bytes, cut: true };
      }
    }
    to.end();
    return { bytes, cut: false };
  } catch {
    to.destroy();
    return { bytes, cut: true };
  } finally {
    await file.close();
  }
}

function lengthOf(part: Part): number {
  return Buffer.isBuffer(part) ? part.length : part.last - part.first + 1;
}
