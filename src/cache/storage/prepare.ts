import { join } from 'node:path';
import { markCacheFolder, openCacheDatabases, prepareCacheFolder } from './environment.ts';
import { contentFolder, createContentFiles } from './files.ts';

/**
 * Makes the folder ready before any process opens the cache in it: sound, and without files that
 * nothing refers to. Rejects with `unavailable` where it cannot be written.
 */
export async function prepareCache(folder: string): Promise<void> {
  await prepareCacheFolder(folder);
  const databases = openCacheDatabases(folder);
  try {
    const files = createContentFiles(join(folder, contentFolder));
    const ids = await files.list();
    await files.remove(ids.filter((id) => !databases.files.doesExist(id)));
  } finally {
    await databases.environment.close();
  }
}

/**
 * Notes that no process has the cache in a folder open any more, and that it is whole. Where that
 * cannot be noted, what is in it is not believed after the next start of the machine.
 */
export async function settleCache(folder: string): Promise<void> {
  await markCacheFolder(folder, 'closed').catch(() => undefined);
}
