import { uuidv7 } from 'uuidv7';
import { openStore } from './store/open.ts';
import type { Store } from './store/store.ts';

/**
 * Opens the store of a data folder, for the server or for a command that works on the folder
 * itself.
 */
export function openData(folder: string): Promise<Store> {
  return openStore({ folder, now: Date.now, newId: uuidv7 });
}
