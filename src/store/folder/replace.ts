import { rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Database } from 'lmdb';
import { openDatabases, openEnvironment, type Databases } from '../databases.ts';
import { copyBatchEntries } from '../limits.ts';
import { putLostEntries } from '../outbox-entries.ts';
import { syncPath } from './backup.ts';
import { dataFile, isMissing, lockFile } from './data-folder.ts';

/** The folder inside a data folder in which a node copies the log of its centre again. */
export const copyFolder = '.copy';

/** The file in it that says that the copy is complete. */
export const completeMark = 'complete';

/** The databases that belong to the node and not to the log that it copies. */
const ownDatabases = ['node', 'outbox', 'outboxvk'] as const satisfies readonly (keyof Databases)[];

/**
 * Replaces the data of a folder by a complete copy inside it (docs/design/nodes.md), if there is
 * one; resolves to whether there was. The caller has claimed the folder. Repeating it after a crash
 * completes it.
 */
export async function replaceWithCopy(folder: string): Promise<boolean> {
  const copy = join(folder, copyFolder);
  if (!(await isThere(join(copy, completeMark)))) return false;
  if (await isThere(join(copy, dataFile))) {
    await carryOver(folder, copy);
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

type Any = Database<string, Uint8Array>;

async function carryOver(folder: string, copy: string): Promise<void> {
  const [from, to] = [openEnvironment(folder), openEnvironment(copy)];
  try {
    const source = from.transactionSync(() => openDatabases(from));
    const target = to.transactionSync(() => openDatabases(to));
    for (const name of ownDatabases) {
      // Both sides encode keys the same way, and all values are texts.
      const [one, other] = [source[name], target[name]] as readonly unknown[] as [Any, Any];
      carryEntries(one, other);
    }
    to.transactionSync(() => {
      for (const { key, value } of source.meta.getRange({})) {
        if (String(key).startsWith('outbox')) target.meta.putSync(key, value);
      }
      putLostEntries(source, target);
    });
  } finally {
    await Promise.all([from.close(), to.close()]);
  }
}

function carryEntries<K extends number | Uint8Array>(
  source: Database<string, K>,
  target: Database<string, K>,
): void {
  const entries = source.getRange({})[Symbol.iterator]();
  const carrySome = (): boolean => {
    for (let count = 0; count < copyBatchEntries; count += 1) {
      const next = entries.next();
      if (next.done === true) return true;
      target.putSync(next.value.key, next.value.value);
    }
    return false;
  };
  while (!target.transactionSync(carrySome));
}
