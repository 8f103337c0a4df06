import { rmSync } from 'node:fs';
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after } from 'node:test';

/** Registers what to do after a test or suite, as the context of node:test does. */
export interface Cleaning {
  after(cleanup: () => unknown): void;
}

/** Registers what to do after the tests of a suite. Call it in the suite. */
export function cleaningAfterAll(): Cleaning {
  const cleanups: (() => unknown)[] = [];
  after(async () => {
    for (const cleanup of cleanups) await cleanup();
  });
  return { after: (cleanup) => void cleanups.push(cleanup) };
}

/** Folders that could not be removed, because a process still wrote into them. */
const left = new Set<string>();

process.once('exit', () => {
  for (const folder of left) rmSync(folder, { recursive: true, force: true });
});

/**
 * A temporary folder, removed after the test. node:test runs the callbacks of `after` in order and
 * stops at the first that fails, so a server may still write into the folder when it is removed.
 * The remaining files are removed when this process ends.
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
