import { fileURLToPath } from 'node:url';
import packageJson from '../package.json' with { type: 'json' };

/** Waymark's version, as its package says it. */
export const { version } = packageJson;

/** The commit that a package was built from; `npm run package` defines it. */
declare const WAYMARK_COMMIT: string | undefined;

/** The version as `waymark --version` prints it, with the commit that a package was built from. */
export const versionText =
  typeof WAYMARK_COMMIT === 'undefined' ? version : `${version} (commit ${WAYMARK_COMMIT})`;

/** The folder with `public/` and `conf/`: a clone, or what a package has installed. */
export const packageFolder = fileURLToPath(new URL('..', import.meta.url));
