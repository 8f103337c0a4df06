import { closeSync, fstatSync } from 'node:fs';
import { crc32 } from 'node:zlib';
import type { FileSource } from '../http/reply.ts';
import { createFileSource } from '../http/file-source.ts';

/** Content of a kept answer in a file of its own, read anew each time it is sent. */
export interface ContentFile {
  /** Opens it; undefined where it has gone, or is not as long as it was. */
  open(): FileSource | undefined;
  /** Whether it could be opened at this moment. */
  isThere(): boolean;
}

/** What is known of content in a file. */
interface ContentFileParts {
  /** Opens the file: a descriptor, undefined where it has gone. */
  readonly open: () => number | undefined;
  readonly bytesLength: number;
  /** CRC-32 of the content. */
  readonly crc: number;
  /** Told when it is not what it was. */
  readonly broken: () => void;
}

/**
 * Content in a file. The first time that all of it is read, it is held against its CRC as it is
 * read: the last piece of content that is not what it was fails, and nobody takes it for whole.
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
      // A part says nothing of the whole.
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
