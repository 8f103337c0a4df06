import type { ServerResponse } from 'node:http';
import type { Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Body, FieldList, FileSource, Part, Reply } from '../http/reply.ts';
import type { Prepared, SendingResponse, Sent } from './http-message.ts';
import { takeBuffers } from './h1/file-buffers.ts';
import { NodeResponse, resetIfUnframed } from './h1/node-http.ts';
import { endInPieces, goesInPieces, writeAll } from './h1/pieces.ts';
import { answerHeadHeldMs, preparedTextBytesMax } from './limits.ts';

/**
 * Writes an answer to its socket, as fast as the client reads. If the answer cannot be finished, it
 * ends the connection, so that the client sees that a part is missing (RFC 9112 §8). Returns at
 * once if there is nothing to wait for.
 */
export function send(
  response: ServerResponse | SendingResponse,
  reply: Reply,
): Sent | Promise<Sent> {
  if ('sendReply' in response) return response.sendReply(reply);
  const { status, fields, body } = reply;
  response.writeHead(status, nodeFields(fields));
  switch (body.kind) {
    case 'none':
      response.end();
      return { bytes: 0, cut: false };
    case 'bytes': {
      const { bytes } = body;
      // A text with one character for each byte goes out with the head in one piece.
      if (bytes.length <= preparedTextBytesMax) response.end(bytes.toString('latin1'), 'latin1');
      else if (goesInPieces(response.socket, bytes)) return sendInPieces(response, bytes);
      else response.end(bytes);
      return { bytes: bytes.length, cut: false };
    }
    case 'file':
    case 'stream':
      return sendContent(response, body);
  }
}

/** Content that is written piece by piece, after a head that it can send ahead of the first one. */
interface ContentSink extends Writable {
  flushHeaders(): void;
  /** Sets the trailer fields; Node's responses have another way. */
  trailWith?(trailers: () => FieldList): void;
}

/** Writes content from a file or a stream, as fast as the client reads. */
export function sendContent(
  sink: ContentSink,
  body: Extract<Body, { readonly kind: 'file' | 'stream' }>,
): Promise<Sent> {
  if (body.kind === 'file') return sendFile(sink, body.file, body.parts);
  return sendStream(sink, body.stream, body.trailers);
}

const contentDisposition = 'content-disposition';

/**
 * Returns fields in an order in which Node sends them unchanged: Node reads a Content-Disposition
 * after Content-Length as UTF-8, and changes or refuses each byte over 127.
 */
function nodeFields(fields: FieldList): string[] {
  const isDisposition = (name: string | undefined): boolean =>
    name?.length === contentDisposition.length && name.toLowerCase() === contentDisposition;
  if (!fields.some((name, at) => at % 2 === 0 && isDisposition(name))) return fields as string[];
  const pairOf = (at: number): number => at - (at % 2);
  const [first, rest] = [true, false].map((isFirst) =>
    fields.filter((_, at) => isDisposition(fields[pairOf(at)]) === isFirst),
  );
  return [...(first ?? []), ...(rest ?? [])];
}

/**
 * Writes a prepared answer: short content goes out with the head, in one piece. `nowMs` is
 * milliseconds since 1970.
 */
export function sendPrepared(
  response: ServerResponse | SendingResponse,
  prepared: Prepared,
  nowMs: number,
): void {
  if ('sendPrepared' in response) {
    response.sendPrepared(prepared, nowMs);
    return;
  }
  const { status, fields, content } = prepared;
  response.writeHead(status, nodeFields(fields));
  if (typeof content === 'string') response.end(content, 'latin1');
  else if (content !== undefined && goesInPieces(response.socket, content)) {
    void endInPieces(response, content);
  } else response.end(content);
}

async function sendInPieces(response: ServerResponse, content: Buffer): Promise<Sent> {
  const bytes = await endInPieces(response, content);
  return { bytes, cut: bytes < content.length };
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
  response: ContentSink,
  stream: Readable,
  trailers?: () => FieldList,
): Promise<Sent> {
  let bytes = 0;
  if (trailers !== undefined) trail(response, stream, trailers);
  // A client of an event stream needs the head before the first event.
  if (stream.readableLength === 0 && !stream.readableEnded) sendHead(response);
  stream.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
  });
  // Ahead of the pipeline, which closes the connection.
  stream.once('error', () => {
    if (response instanceof NodeResponse) resetIfUnframed(response);
  });
  try {
    await pipeline(stream, response);
    return { bytes, cut: false };
  } catch {
    response.destroy();
    return { bytes, cut: true };
  }
}

/** Sends a head ahead of its content. */
function sendHead(response: ContentSink): void {
  // Node would send the head as UTF-8, with two bytes for each byte over 127.
  if (!(response instanceof NodeResponse)) response.flushHeaders();
  else if (!response.writableEnded && !response.destroyed) response.write('', 'latin1');
}

/** Sends trailer fields after content of unknown length. */
function trail(response: ContentSink, stream: Readable, trailers: () => FieldList): void {
  response.trailWith?.(trailers);
  if (!(response instanceof NodeResponse)) return;
  const add = (): void => {
    const fields = trailers();
    const pairs = fields.flatMap((name, at): [string, string][] =>
      at % 2 === 0 ? [[name, fields[at + 1] ?? '']] : [],
    );
    response.addTrailers(pairs);
  };
  // Ahead of the pipeline, which ends the answer.
  if (stream.readableEnded) add();
  else stream.once('end', add);
}

async function sendFile(
  response: Writable,
  file: FileSource,
  parts: readonly Part[],
): Promise<Sent> {
  let bytes = 0;
  try {
    for (const part of parts) {
      const sent = Buffer.isBuffer(part)
        ? await writeAll(response, part)
        : await copyRange(response, file, part.first, part.last + 1);
      bytes += sent;
      if (sent < lengthOf(part)) {
        response.destroy();
        return { bytes, cut: true };
      }
    }
    response.end();
    return { bytes, cut: false };
  } catch {
    response.destroy();
    return { bytes, cut: true };
  } finally {
    await file.close();
  }
}

/**
 * Copies bytes of a file from one position up to another through two buffers: it reads into one
 * while it writes the other. Resolves to the number of copied bytes: fewer if the file has become
 * shorter or the client has disconnected.
 */
async function copyRange(
  response: Writable,
  file: FileSource,
  from: number,
  to: number,
): Promise<number> {
  const { pair, release } = takeBuffers(to - from);
  let [reading, writing] = pair;
  let position = from;
  let write: Promise<number> | undefined;
  let areIdle = false;
  try {
    while (position < to) {
      const wanted = Math.min(reading.length, to - position);
      const count = await file.read(reading.subarray(0, wanted), position);
      const written = write === undefined ? 1 : await write;
      if (written === 0) return position - from;
      if (count === 0) return position - from;
      position += count;
      write = writeAll(response, reading.subarray(0, count));
      [reading, writing] = [writing, reading];
    }
    // A socket reads from a buffer until the whole write is done.
    areIdle = (await write) !== 0;
    return areIdle ? position - from : 0;
  } finally {
    release(areIdle);
  }
}

function lengthOf(part: Part): number {
  return Buffer.isBuffer(part) ? part.length : part.last - part.first + 1;
}
