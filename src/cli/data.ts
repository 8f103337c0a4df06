import type { Config } from '../config/config.ts';
import { openData } from '../data.ts';
import { Failure } from '../model/failure.ts';
import { holdsData } from '../store/folder.ts';
import type { Store } from '../store/store.ts';

/**
 * Opens the data that a configuration names, for a command that only reads it: a folder that has
 * none is a slip, and is left alone. Rejects with `not_found` then, else as openData does.
 */
export async function openExistingData({ server }: Config): Promise<Store> {
  if (await holdsData(server.data)) return openData(server.data);
  throw new Failure('not_found', `there is no data in ${server.data} yet`);
}
