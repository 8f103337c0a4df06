import { rmSync } from 'node:fs';
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after } from 'node:test';

/** What comes after a test, or after all of a file: the context, or the functions, of node:test. */
export interface Cleaning {
  after(cleanup: () => unknown): void;
}

/** For what the tests of a suite share: call it in the suite. */
export function cleaningAfterAll(): Cleaning {
  const cleanups: (() => unknown)[] = [];
  after(async () => {
    for (const cleanup of cleanups) await cleanup();
  });
  return { after: (cleanup) => void cleanups.push(cleanup) };
}

/** Folders into which somebody still wrote when they were to be removed. */
const left = new Set<string>();

process.once('exit', () => {
  for (const folder of left) rmSync(folder, { recursive: true, force: true });
});

/**
 * A folder of its own for a test, gone afterwards. What comes after a test is done in the order in
 * which it was asked for, and nothing more once one of it fails: so whoever writes into the folder
 * may stop later than it goes, and the rest of the folder goes with the process then.
 */
export async function temporaryFolder(t: Cleaning): Promise<string> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'waymark-test-')));
  t.after(async () => {
    left.add(folder);
    await rm(folder, { recursive: true, force: true }).then(
      () => left.delete(folder),
      () => undefined,
    );
  });
  return folder;
}

/** Writes files by their path below a folder. */
export async function writeFiles(
  folder: string,
  files: Readonly<Record<string, string | Buffer>>,
): Promise<void> {
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), content);
  }
}
