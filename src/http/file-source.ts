import { close, read } from 'node:fs';
import { Readable } from 'node:stream';
import { promisify } from 'node:util';
import type { FileSource } from './reply.ts';
import { fileChunkBytes } from './limits.ts';

const readDescriptor = promisify(read);
const closeDescriptor = promisify(close);

/**
 * An open file as a source of content, which owns the descriptor from now on; closing it twice does
 * no harm.
 */
export function createFileSource(descriptor: number): FileSource {
  let open = true;
  return {
    async read(buffer, position) {
      // A closed descriptor's number may already be another file's.
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

/** Bytes in memory as a source of content. */
export function bytesSource(bytes: Buffer): FileSource {
  return {
    read: (buffer, position) => Promise.resolve(bytes.copy(buffer, 0, position)),
    close: () => Promise.resolve(),
  };
}

/** Reads so many bytes from the beginning of a file; undefined where it has fewer. */
export async function readBytes(
  source: FileSource,
  bytesLength: number,
): Promise<Buffer | undefined> {
  // Not from Node's pool, of which a small slice would keep a large piece alive.
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
 * So many bytes from the beginning of a file as a stream, which closes it once it has been read
 * from; it fails where the file has fewer.
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
