import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** All lines of the files in a folder whose names begin with `access.log`. */
export function accessLines(folder: string): readonly string[] {
  return readdirSync(folder)
    .filter((name) => name.startsWith('access.log'))
    .flatMap((name) => readFileSync(join(folder, name), 'utf8').split('\n').slice(0, -1));
}
