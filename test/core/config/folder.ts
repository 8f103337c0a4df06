import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { TestContext } from 'node:test';
import type { Config, ConfigResult } from '../../../src/core/config/config.ts';
import { temporaryFolder } from '../../folder.ts';
import { readConfig } from '../../ini.ts';

/** Creates a folder with files by their relative paths; a path that ends in `/` is a folder. */
export async function makeFolder(
  context: TestContext,
  files: Readonly<Record<string, string | Uint8Array>>,
): Promise<string> {
  const folder = await temporaryFolder(context);
  for (const [path, content] of Object.entries(files)) {
    await mkdir(path.endsWith('/') ? join(folder, path) : dirname(join(folder, path)), {
      recursive: true,
    });
    if (!path.endsWith('/')) await writeFile(join(folder, path), content);
  }
  return folder;
}

/** Reads an ini file with the settings of the tests. */
export function readIni(
  file: string,
  env: Readonly<Record<string, string>> = {},
  given: { readonly isReload?: boolean } = {},
): Promise<ConfigResult> {
  return readConfig({ file, env, cores: 6, hostName: 'boathouse', ...given });
}

/** The configuration of an ini file; fails if it has problems. */
export async function requireIni(
  file: string,
  env: Readonly<Record<string, string>> = {},
): Promise<Config> {
  const result = await readIni(file, env);
  if (result.ok) return result.config;
  throw new Error(result.problems.map(({ line, message }) => `${line}: ${message}`).join('\n'));
}
