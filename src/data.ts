import { newId, now } from './model/clock.ts';
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
