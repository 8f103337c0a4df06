import type { Config } from './config/config.ts';
import { newId, now } from './model/clock.ts';
import { Failure } from './model/failure.ts';
import { holdsData, isWritable } from './store/folder/data-folder.ts';
import { openStore } from './store/open.ts';
import type { Store } from './store/store.ts';

/**
 * Opens the store of a data folder, for the server or for a command; `readOnly` for a folder that
 * cannot be written, `isInUse` for one that an older version may use. Rejects as openStore does.
 */
export function openData(
  folder: string,
  {
    readOnly = false,
    isInUse = false,
  }: { readonly readOnly?: boolean; readonly isInUse?: boolean } = {},
): Promise<Store> {
  return openStore({ folder, now, newId, readOnly, isInUse });
}

/**
 * Opens the data of a configuration for a command that must not create a data folder. Rejects with
 * `not_found` for a folder without data, or as openData does.
 */
export async function openExistingData({ server }: Config): Promise<Store> {
  await requireData(server.data);
  return openData(server.data);
}

/** As openExistingData, for a command that only reads: the folder need not be writable. */
export async function openDataToRead({ server }: Config): Promise<Store> {
  await requireData(server.data);
  return openData(server.data, { readOnly: !(await isWritable(server.data)) });
}

/** Rejects with `not_found` if a folder has no data; the message ends with `hint`. */
export async function requireData(folder: string, hint = ''): Promise<void> {
  if (await holdsData(folder)) return;
  throw new Failure('not_found', `there is no data in ${folder} yet${hint}`);
}
