import { spawnSync } from 'node:child_process';

/**
 * For the option `skip` of a test: false if a program is on the path, else a line that says what the
 * test needs.
 */
export function installed(program: string): false | string {
  const found = spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;
  return found ? false : `needs ${program}, which is not installed`;
}
