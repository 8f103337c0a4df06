import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * For the option `skip` of a test: false if a program is on the path, else a line that says what the
 * test needs.
 */
export function installed(program: string): false | string {
  const found = spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;
  return found ? false : `needs ${program}, which is not installed`;
}

/**
 * As `installed`, for a test that compares times of this process with those of files, or of programs
 * without the C library: the program faketime shifts the clock of this process alone.
 */
export function oneClock(): false | string {
  const folder = mkdtempSync(join(tmpdir(), 'waymark-clock-'));
  const { mtimeMs } = statSync(folder);
  rmSync(folder, { recursive: true });
  const isOne = Math.abs(Date.now() - mtimeMs) < 60_000;
  return isOne ? false : 'needs the clock of the files, which faketime does not shift';
}
