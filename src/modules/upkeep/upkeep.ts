import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { dataFile } from '../../core/log/folder/data-folder.ts';
import type { LogPart } from '../../core/log/store.ts';
import { type Backup, backUp } from './backup.ts';
import { type Verification, verifyData } from './verify/verify.ts';

/** What keeps the data of a folder safe. */
interface Upkeep {
  /**
   * Copies a snapshot of the data into a folder that is empty or does not exist, given by its
   * absolute path. Rejects with `conflict` if it is not empty, with `unavailable` if it cannot be
   * written, and with the reason of the signal if that aborts; no files remain then. `copied` gets
   * the number and bytes of the files of assets so far.
   */
  backUp(
    target: string,
    signal?: AbortSignal,
    copied?: (files: number, bytes: number) => void,
  ): Promise<Backup>;
  /**
   * Checks all pages, then folds the log into a temporary copy and compares every projection with
   * it, part by part; writes may continue. The copy is in a folder, by default the data folder, and
   * is about as large as the data. Rejects with `storage_full` if the folder has less room.
   */
  verify(folder?: string): AsyncIterable<Verification>;
}

/** Backups of a data folder, and its verification. */
export const upkeep: LogPart<Upkeep> = {
  open: ({ databases, folder, checkPages, reads: { families } }) => ({
    backUp: (target, signal, copied) => backUp(databases, { folder, target, signal, copied }),
    async *verify(within = folder) {
      await checkPages();
      const { size: bytes } = await stat(join(folder, dataFile));
      yield* verifyData(databases, families, { folder: within, bytes });
    },
  }),
};
