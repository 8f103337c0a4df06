import type { Readable } from 'node:stream';
import { Failure } from '../../values/failure.ts';
import { type Reply, discard, withoutFields } from '../reply.ts';
import type { Fields } from '../request.ts';

/** Content that cannot be read whole, with the failure. */
const broken = new WeakMap<Readable, Failure>();

/** Bytes of a file that are read at once, by code that needs only a part of them in memory. */
const chunkBytesMax = 2 ** 20;

/**
 * Reads the content of a reply into memory, and closes it. Rejects with `too_large` for more bytes
 * than `bytesMax`, with `unavailable` for a file that changes meanwhile, and with the error of its
 * stream.
 */
export async function readContent(reply: Reply, bytesMax: number): Promise<Buffer> {
  const { body } = reply;
  switch (body.kind) {
    case 'none':
      return Buffer.alloc(0);
    case 'bytes':
      return body.bytes;
    case 'file':
      try {
        requireSize(body.bytesLength, bytesMax);
        return await readParts(body);
      } finally {
        await body.file.close();
      }
    case 'stream': {
      try {
        requireSize(body.bytesLength ?? 0, bytesMax);
        const chunks: Buffer[] = [];
        let bytes = 0;
        for await (const chunk of body.stream as AsyncIterable<Buffer>) {
          bytes += chunk.length;
          requireSize(bytes, bytesMax);
          chunks.push(chunk);
        }
        return Buffer.concat(chunks);
      } finally {
        await discard(reply);
      }
    }
  }
}

/**
 * The content of a reply in chunks; closes it at the end. Rejects with `unavailable` for a file
 * that changes meanwhile, and with the error of its stream.
 */
export async function* contentChunks(reply: Reply): AsyncGenerator<Buffer> {
  const { body } = reply;
  try {
    if (body.kind === 'bytes') yield body.bytes;
    if (body.kind === 'file') yield* fileChunks(body);
    if (body.kind === 'stream') yield* body.stream as AsyncIterable<Buffer>;
  } finally {
    await discard(reply);
  }
}

async function* fileChunks({ file, parts }: FileBody): AsyncGenerator<Buffer> {
  for (const part of parts) {
    if (Buffer.isBuffer(part)) {
      yield part;
      continue;
    }
    for (let first = part.first; first <= part.last; first += chunkBytesMax) {
      const length = Math.min(chunkBytesMax, part.last + 1 - first);
      yield await readPiece(file, { first, length });
    }
  }
}

type FileBody = Extract<Reply['body'], { kind: 'file' }>;

async function readParts({ file, parts }: FileBody): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for (const part of parts) {
    if (Buffer.isBuffer(part)) pieces.push(part);
    else pieces.push(await readPiece(file, { ...part, length: part.last - part.first + 1 }));
  }
  return Buffer.concat(pieces);
}

async function readPiece(
  file: FileBody['file'],
  { first, length }: { readonly first: number; readonly length: number },
): Promise<Buffer> {
  const piece = Buffer.allocUnsafe(length);
  for (let filled = 0; filled < length;) {
    const count = await file.read(piece.subarray(filled), first + filled);
    if (count === 0)
      throw new Failure(
        'unavailable',
        'The file changed during the request. Send the request again.',
      );
    filled += count;
  }
  return piece;
}

function requireSize(bytes: number, bytesMax: number): void {
  if (bytes <= bytesMax) return;
  throw new Failure(
    'too_large',
    `The content has more than ${bytesMax} bytes. Fetch it over HTTP, which streams it.`,
  );
}

/**
 * Fails the content of a request, for its present or future reader; returns whether there is one
 * now.
 */
export function failBody(body: Readable, failure: Failure): boolean {
  broken.set(body, failure);
  return body.listenerCount('error') > 0 && body.emit('error', failure);
}

/**
 * Throws the failure of the content of a request, if it has one: to be called right before it is
 * read, since it may have failed while the request waited.
 */
export function requireIntactBody(body: Readable): void {
  const failure = broken.get(body);
  if (failure !== undefined) throw failure;
}

/**
 * The fields of a request for the page of an error: without preconditions and ranges, which apply
 * to another page.
 */
export function plainGetFields(fields: Fields): Fields {
  const kept = Object.create(null) as Fields & Record<string, string>;
  for (const name of ['accept-encoding', 'accept-language']) {
    const value = fields[name];
    if (value !== undefined) kept[name] = value;
  }
  return kept;
}

/**
 * A page that is sent with the status of an error: without validators and Cache-Control, since no
 * cache may store it as the content of the URL.
 */
export function withoutCaching({ status, fields, body, source }: Reply): Reply {
  const names = ['etag', 'last-modified', 'accept-ranges', 'cache-control'];
  return { status, fields: withoutFields(fields, ...names), body, source };
}
