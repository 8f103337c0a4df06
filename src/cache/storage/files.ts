import { openSync } from 'node:fs';
import { mkdir, open, readdir, rm, writeFile, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';

/** Name of the folder in the cache's own that content is in. */
export const contentFolder = 'content';

/** Content of answers in files of its own, each under the id of its answer. */
export interface ContentFiles {
  write(id: string, content: Buffer): Promise<void>;
  /** Makes a file that content is written to as it comes; it is kept once its answer is. */
  create(id: string): Promise<FileHandle>;
  /** Opens a file to read: a descriptor, undefined where it is not there. */
  open(id: string): number | undefined;
  /** Removes files, as far as they are there. */
  remove(ids: readonly string[]): Promise<void>;
  /** All ids that there is a file of. */
  list(): Promise<readonly string[]>;
}

/** Content in the files of a folder, spread over folders by the ends of their ids. */
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
        // What is there of it would be of nobody's budget.
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
