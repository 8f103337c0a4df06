import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { NpmPackage } from './targets.ts';

const run = promisify(execFile);

/**
 * Unpacks a release of an npm package into a folder of a cache; resolves to that folder. Rejects if
 * its archive is another one than that of the recorded integrity.
 */
export async function unpackNpmPackage(
  { name, version, integrity }: NpmPackage,
  cache: string,
): Promise<string> {
  const base = `${name.replace('@', '').replace('/', '-')}-${version}`;
  const archive = join(cache, `${base}.tgz`);
  const folder = join(cache, base);
  await mkdir(folder, { recursive: true });
  const isThere = await stat(archive).then(
    () => true,
    () => false,
  );
  if (!isThere) {
    await run('npm', ['pack', `${name}@${version}`, '--pack-destination', cache, '--silent']);
  }
  const found = `sha512-${createHash('sha512')
    .update(await readFile(archive))
    .digest('base64')}`;
  if (found !== integrity) {
    throw new Error(`${archive} has the integrity ${found}; targets.ts expects ${integrity}`);
  }
  await run('tar', ['-xzf', archive, '-C', folder, '--strip-components=1', '--no-same-owner']);
  return folder;
}
