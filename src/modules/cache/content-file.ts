import { closeSync, fstatSync } from 'node:fs';
import { crc32 } from 'node:zlib';
import type { FileSource } from '../../core/http/reply.ts';
import { createFileSource } from '../../core/http/content/file-source.ts';

/** The content of a stored response in its own file, which each response opens. */
export interface ContentFile {
  /** Opens the file; undefined if it is missing or has another length. */
  open(): FileSource | undefined;
  /** Whether the file exists with its length. */
  isThere(): boolean;
}

/** The file of some content, and its checksum. */
interface ContentFileParts {
  /** Opens the file and returns a descriptor; undefined if it is missing. */
  readonly open: () => number | undefined;
  readonly bytesLength: number;
  /** CRC-32 of the content. */
  readonly crc: number;
  /** Called when the checksum does not match. */
  readonly broken: () => void;
}

/**
 * Content in a file. The first complete read verifies the CRC: the last piece of corrupt content
 * fails, so that no client takes it for complete.
 */
export function contentFile(filed: ContentFileParts): ContentFile {
  const { open, bytesLength } = filed;
  let isSound = false;

  function openWhole(): number | undefined {
    const descriptor = open();
    if (descriptor === undefined || fstatSync(descriptor).size === bytesLength) return descriptor;
    closeSync(descriptor);
    return undefined;
  }

  return {
    open() {
      const descriptor = openWhole();
      if (descriptor === undefined) return undefined;
      const source = createFileSource(descriptor);
      if (isSound) return source;
      return withChecksum(source, filed, () => {
        isSound = true;
      });
    },
    isThere() {
      const descriptor = openWhole();
      if (descriptor !== undefined) closeSync(descriptor);
      return descriptor !== undefined;
    },
  };
}

function withChecksum(
  source: FileSource,
  { bytesLength, crc, broken }: ContentFileParts,
  sound: () => void,
): FileSource {
  let position = 0;
  let sum = 0;
  return {
    async read(buffer, from) {
      const bytesRead = await source.read(buffer, from);
      // Only a sequential read covers the whole checksum.
      if (from !== position) return bytesRead;
      position += bytesRead;
      sum = crc32(buffer.subarray(0, bytesRead), sum);
      if (position < bytesLength || bytesRead === 0) return bytesRead;
      if (sum !== crc) {
        broken();
        throw new Error('Kept content is not what it was.');
      }
      sound();
      return bytesRead;
    },
    close: () => source.close(),
  };
}
