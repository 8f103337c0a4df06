import { rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { openDatabases, openEnvironment } from '../../../core/log/databases.ts';
import { transactSync } from '../../../core/log/environment.ts';
import { syncPath } from '../../upkeep/backup.ts';
import { carryOver } from './carry-over.ts';
import { dataFile, isMissing, lockFile } from '../../../core/log/folder/data-folder.ts';

/** The folder inside a data folder in which a node copies the log of its centre again. */
export const copyFolder = '.copy';

/** The file in it that says that the copy is complete. */
export const completeMark = 'complete';

/**
 * Replaces the data of a folder by a complete copy inside it (docs/design/nodes.md), if there is
 * one; resolves to whether there was. The caller has claimed the folder. Repeating it after a crash
 * completes it.
 */
export async function replaceWithCopy(folder: string): Promise<boolean> {
  const copy = join(folder, copyFolder);
  if (!(await isThere(join(copy, completeMark)))) return false;
  if (await isThere(join(copy, dataFile))) {
    await carryInto(copy, folder);
    await syncPath(join(copy, dataFile));
    await rm(join(folder, lockFile), { force: true });
    await rename(join(copy, dataFile), join(folder, dataFile));
    await syncPath(folder);
  }
  await rm(copy, { recursive: true, force: true });
  return true;
}

async function isThere(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
}

async function carryInto(copy: string, folder: string): Promise<void> {
  const [from, to] = [openEnvironment(folder), openEnvironment(copy)];
  try {
    const source = transactSync(from, () => openDatabases(from));
    const target = transactSync(to, () => openDatabases(to));
    carryOver(source, target);
  } finally {
    await Promise.all([from.close(), to.close()]);
  }
}
