import { stat } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { ConfigResult } from './config.ts';
import { configSettleMs } from './limits.ts';

/** How often the server looks whether the ini file is still being written, 10 s in all. */
const configSettleRoundsMax = 100;

/**
 * Reads a configuration once its files have not changed for `configSettleMs`, so that no file is
 * read while a program writes it. The first of `files` is the ini file; a file that does not exist
 * counts as unchanged. Resolves to a problem if the files keep changing.
 */
export async function readWhenStable({
  files,
  read,
  now,
  signal,
}: {
  readonly files: readonly string[];
  readonly read: () => Promise<ConfigResult>;
  readonly now: () => number;
  /** Ends the wait early. */
  readonly signal?: AbortSignal;
}): Promise<ConfigResult> {
  let seen = await fingerprints(files);
  for (let round = 0; round < configSettleRoundsMax; round += 1) {
    if (signal?.aborted === true) break;
    const isStable = seen.every((file) => isOld(file, now())) || (await isUnchanged(files, seen));
    if (isStable) {
      const result = await read();
      if (isDeepStrictEqual(await fingerprints(files), seen)) return result;
    }
    seen = await fingerprints(files);
  }
  const message =
    'the ini file, or a file that it names, keeps changing, so it was not read: ' +
    'write it once, and leave it unchanged for 0.1 s';
  return { ok: false, problems: [{ file: files[0] ?? '', line: 0, message }] };
}

interface Fingerprint {
  readonly inode: bigint;
  readonly bytes: bigint;
  /** The system updates it at each write, truncation and rename (inode(7)). */
  readonly changedMs: bigint;
  readonly changedNs: bigint;
}

async function isUnchanged(
  files: readonly string[],
  seen: readonly (Fingerprint | undefined)[],
): Promise<boolean> {
  await delay(configSettleMs);
  return isDeepStrictEqual(await fingerprints(files), seen);
}

function isOld(file: Fingerprint | undefined, nowMs: number): boolean {
  return file === undefined || nowMs - Number(file.changedMs) > configSettleMs;
}

function fingerprints(files: readonly string[]): Promise<(Fingerprint | undefined)[]> {
  return Promise.all(
    files.map(async (file) => {
      try {
        const { ino, size, ctimeMs, ctimeNs } = await stat(file, { bigint: true });
        return { inode: ino, bytes: size, changedMs: ctimeMs, changedNs: ctimeNs };
      } catch {
        // Reading the file reports why it cannot be read.
        return undefined;
      }
    }),
  );
}
