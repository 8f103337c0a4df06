import { openSync } from 'node:fs';
import { mkdir, open, readdir, rm, writeFile, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';

/** The name of the folder of content files in the cache folder. */
export const contentFolder = 'content';

/** The content files of responses, named by their ids. */
export interface ContentFiles {
  write(id: string, content: Buffer): Promise<void>;
  /** Creates a file for content that is still arriving. */
  create(id: string): Promise<FileHandle>;
  /** Opens a file for reading: a descriptor, or undefined if it does not exist. */
  open(id: string): number | undefined;
  /** Deletes files; ignores those that do not exist. */
  remove(ids: readonly string[]): Promise<void>;
  /** The ids of all files. */
  list(): Promise<readonly string[]>;
}

/** Content files in subfolders named by the last two characters of their ids. */
export function createContentFiles(folder: string): ContentFiles {
  const folderOf = (id: string): string => join(folder, id.slice(-2));
  const pathOf = (id: string): string => join(folderOf(id), id);

  async function create(id: string): Promise<FileHandle> {
    try {
      return await open(pathOf(id), 'wx+', 0o600);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      await mkdir(folderOf(id), { recursive: true, mode: 0o700 });
      return open(pathOf(id), 'wx+', 0o600);
    }
  }

  return {
    create,
    async write(id, content) {
      const handle = await create(id);
      try {
        await writeFile(handle, content);
      } catch (error) {
        // The capacity would not count an incomplete file.
        await rm(pathOf(id), { force: true });
        throw error;
      } finally {
        await handle.close();
      }
    },
    open(id) {
      try {
        return openSync(pathOf(id), 'r');
      } catch {
        return undefined;
      }
    },
    async remove(ids) {
      await Promise.all(ids.map((id) => rm(pathOf(id), { force: true })));
    },
    async list() {
      const folders = await readdir(folder).catch(() => []);
      const lists = await Promise.all(folders.map((name) => readdir(join(folder, name))));
      return lists.flat();
    },
  };
}
