import { close, read } from 'node:fs';
import { Readable } from 'node:stream';
import { promisify } from 'node:util';
import type { FileSource } from '../reply.ts';
import { fileChunkBytes } from '../limits.ts';

const readDescriptor = promisify(read);
const closeDescriptor = promisify(close);

/**
 * Makes a file source of an open file. The source owns the descriptor and closes it once, however
 * often `close` is called.
 */
export function createFileSource(descriptor: number): FileSource {
  let open = true;
  return {
    async read(buffer, position) {
      // After `close`, the number of the descriptor may belong to another file.
      if (!open) return 0;
      const { bytesRead } = await readDescriptor(descriptor, buffer, 0, buffer.length, position);
      return bytesRead;
    },
    async close() {
      if (!open) return;
      open = false;
      await closeDescriptor(descriptor);
    },
  };
}

/** Makes a file source of bytes in memory. */
export function bytesSource(bytes: Buffer): FileSource {
  return {
    read: (buffer, position) => Promise.resolve(bytes.copy(buffer, 0, position)),
    close: () => Promise.resolve(),
  };
}

/** Reads the first `bytesLength` bytes of a file; resolves to undefined if it has fewer. */
export async function readBytes(
  source: FileSource,
  bytesLength: number,
): Promise<Buffer | undefined> {
  // Not from Node's buffer pool: a small slice would keep the whole pool in memory.
  const bytes = Buffer.allocUnsafeSlow(bytesLength);
  let filled = 0;
  while (filled < bytes.length) {
    const bytesRead = await source.read(bytes.subarray(filled), filled);
    if (bytesRead === 0) return undefined;
    filled += bytesRead;
  }
  return bytes;
}

/**
 * Returns the first `bytesLength` bytes of a file as a stream that closes the file at its end. The
 * stream fails if the file has fewer bytes.
 */
export function fileStream(source: FileSource, bytesLength: number): Readable {
  let position = 0;
  const readOn = async (stream: Readable): Promise<void> => {
    const buffer = Buffer.allocUnsafeSlow(Math.min(fileChunkBytes, bytesLength - position));
    const bytesRead = await source.read(buffer, position);
    if (bytesRead === 0) throw new Error('The file has become shorter.');
    position += bytesRead;
    stream.push(buffer.subarray(0, bytesRead));
  };
  return new Readable({
    read() {
      if (position === bytesLength) this.push(null);
      else readOn(this).catch((error: unknown) => this.destroy(error as Error));
    },
    destroy(error, done) {
      source.close().then(() => {
        done(error);
      }, done);
    },
  });
}
