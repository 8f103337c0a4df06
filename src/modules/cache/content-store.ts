import { readBytes } from '../../core/http/content/file-source.ts';
import { unpooled } from '../../core/values/json/prepared-json.ts';
import { MIB } from '../../core/values/units.ts';
import type { BodyFilePlace } from './body-buffer.ts';
import type { StoredResponse } from './cached-response.ts';
import { type ContentFile, contentFile } from './content-file.ts';
import type { StoredEntry } from './storage/record.ts';
import type { NewContent, ResponseStorage } from './storage/response-storage.ts';

/** Stored content up to this size is sent from memory, larger content from its file. */
const cacheHeldFileBytesMax = MIB;

interface ContentStoreParts {
  readonly cache: ResponseStorage<StoredResponse>;
  /** Called with a response whose content is corrupt. */
  readonly broken: (answer: StoredResponse) => void;
  readonly report: (error: unknown) => void;
}

/** Reads and places the content of stored responses: short content in memory, long in files. */
export class ContentStore {
  readonly #parts: ContentStoreParts;

  constructor(parts: ContentStoreParts) {
    this.#parts = parts;
  }

  /** The content of a new response as it is served from now on. */
  taken(answer: StoredResponse, content: NewContent): Buffer | ContentFile {
    return content.kind === 'bytes' ? unpooled(content.bytes) : this.#fileOf(answer, content.crc);
  }

  /** The file of a row whose content is too long for memory; else undefined. */
  filed({ entry, crc, isFile }: StoredEntry<StoredResponse>): ContentFile | undefined {
    const isLong = isFile && entry.bytesLength > cacheHeldFileBytesMax;
    return isLong ? this.#fileOf(entry, crc) : undefined;
  }

  /** Reads the content of a row into memory; undefined if it is missing or corrupt. */
  read(row: StoredEntry<StoredResponse>): Buffer | undefined | Promise<Buffer | undefined> {
    return row.isFile ? this.#readFile(row) : this.#parts.cache.content(row);
  }

  /** Where the content of a response is written while it arrives. */
  placeOf(id: string): BodyFilePlace {
    const { cache, report } = this.#parts;
    return { create: () => cache.createFile(id), remove: () => cache.removeFile(id), report };
  }

  async #readFile({ entry, crc }: StoredEntry<StoredResponse>): Promise<Buffer | undefined> {
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
