import { Failure } from '../model/failure.ts';
import { discard, type Reply } from './reply.ts';

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

async function readParts({
  file,
  parts,
}: Extract<Reply['body'], { kind: 'file' }>): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for (const part of parts) {
    if (Buffer.isBuffer(part)) {
      pieces.push(part);
      continue;
    }
    const piece = Buffer.allocUnsafe(part.last - part.first + 1);
    for (let filled = 0; filled < piece.length;) {
      const count = await file.read(piece.subarray(filled), part.first + filled);
      if (count === 0)
        throw new Failure(
          'unavailable',
          'The file changed during the request. Send the request again.',
        );
      filled += count;
    }
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

function requireSize(bytes: number, bytesMax: number): void {
  if (bytes <= bytesMax) return;
  throw new Failure(
    'too_large',
    `The content has more than ${bytesMax} bytes. Fetch it over HTTP, which streams it.`,
  );
}
