import { cacheHeldFileBytesMax } from '../model/limits.ts';
import { ownBytes } from '../model/own-bytes.ts';
import type { AnswerCache, NewContent } from './storage/cache.ts';
import type { Row } from './storage/record.ts';
import { readBytes } from '../http/file-source.ts';
import type { StoredResponse } from './cached-response.ts';
import type { BodyFilePlace } from './body-file.ts';
import { contentFile, type ContentFile } from './content-file.ts';

/** What the content of kept answers stands on. */
interface ContentStoreParts {
  readonly cache: AnswerCache<StoredResponse>;
  /** Told of an answer whose content is not what it was. */
  readonly broken: (answer: StoredResponse) => void;
  readonly report: (error: unknown) => void;
}

/** Where the content of kept answers is: what is short in memory, what is long in its file. */
export class ContentStore {
  readonly #parts: ContentStoreParts;

  constructor(parts: ContentStoreParts) {
    this.#parts = parts;
  }

  /** Content that has come just now, as it is had from now on. */
  taken(answer: StoredResponse, content: NewContent): Buffer | ContentFile {
    return content.kind === 'bytes' ? ownBytes(content.bytes) : this.#fileOf(answer, content.crc);
  }

  /** That of a row which is too long to be had in memory; undefined for all other. */
  filed({ entry, crc, isFile }: Row<StoredResponse>): ContentFile | undefined {
    const isLong = isFile && entry.bytesLength > cacheHeldFileBytesMax;
    return isLong ? this.#fileOf(entry, crc) : undefined;
  }

  /** Reads that of a row into memory; undefined where it has gone, or is not what it was. */
  read(row: Row<StoredResponse>): Buffer | undefined | Promise<Buffer | undefined> {
    return row.isFile ? this.#readFile(row) : this.#parts.cache.content(row);
  }

  /** Where the content of an answer that is still on its way may be written. */
  placeOf(id: string): BodyFilePlace {
    const { cache, report } = this.#parts;
    return { create: () => cache.createFile(id), remove: () => cache.removeFile(id), report };
  }

  async #readFile({ entry, crc }: Row<StoredResponse>): Promise<Buffer | undefined> {
    const file = this.#fileOf(entry, crc).open();
    try {
      return file && (await readBytes(file, entry.bytesLength));
    } catch {
      return undefined;
    } finally {
      await file?.close();
    }
  }

  #fileOf(answer: StoredResponse, crc: number): ContentFile {
    const { cache, broken } = this.#parts;
    const { id, bytesLength } = answer;
    return contentFile({
      open: () => cache.openFile(id),
      bytesLength,
      crc,
      broken: () => {
        broken(answer);
      },
    });
  }
}
