import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import packageJson from '../../../package.json' with { type: 'json' };

/** Waymark's version, as its package says it. */
export const { version } = packageJson;

/** The commit that a package was built from; `npm run package` defines it. */
declare const WAYMARK_COMMIT: string | undefined;

/** The version as `waymark --version` prints it, with the commit that a package was built from. */
export const versionText =
  typeof WAYMARK_COMMIT === 'undefined' ? version : `${version} (commit ${WAYMARK_COMMIT})`;

/** The folder with `public/` and `conf/`: a clone, or what a package has installed. */
export const packageFolder = folderOf('conf/server.ini', import.meta.dirname);

/** The nearest folder, from one upwards, that has a file. */
function folderOf(file: string, folder: string): string {
  if (existsSync(join(folder, file))) return join(folder, '/');
  const above = dirname(folder);
  if (above === folder) throw new Error(`No folder above ${import.meta.dirname} has ${file}.`);
  return folderOf(file, above);
}
