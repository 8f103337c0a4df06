import { close, read } from 'node:fs';
import { promisify } from 'node:util';
import type { FileSource } from '../../http/reply.ts';

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
