import type { Config } from './config/config.ts';
import { newId, now } from './model/clock.ts';
import { Failure } from './model/failure.ts';
import { holdsData, isWritable } from './store/folder/data-folder.ts';
import { openStore } from './store/open.ts';
import type { Store } from './store/store.ts';

/**
 * Opens the store of a data folder, for the server or for a command that works on the folder
 * itself; `readOnly` for a folder that cannot be written. Rejects as openStore does.
 */
export function openData(
  folder: string,
  { readOnly = false }: { readonly readOnly?: boolean } = {},
): Promise<Store> {
  return openStore({ folder, now, newId, readOnly });
}

/**
 * Opens the data that a configuration names, for a command that makes none: a folder without data
 * is a slip, and is left alone. Rejects with `not_found` then, else as openData does.
 */
export async function openExistingData({ server }: Config): Promise<Store> {
  await requireData(server.data);
  return openData(server.data);
}

/**
 * As openExistingData, for a command that only reads: also where the folder cannot be written.
 */
export async function openDataToRead({ server }: Config): Promise<Store> {
  await requireData(server.data);
  return openData(server.data, { readOnly: !(await isWritable(server.data)) });
}

/** Rejects with `not_found` where a folder has no data; `hint` says what to do then. */
export async function requireData(folder: string, hint = ''): Promise<void> {
  if (await holdsData(folder)) return;
  throw new Failure('not_found', `there is no data in ${folder} yet${hint}`);
}
