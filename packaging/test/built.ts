import { join } from 'node:path';
import packageJson from '../../package.json' with { type: 'json' };
import { project } from '../sources.ts';

/** The version of the packages. */
export const { version } = packageJson;

/** A file that `npm run package` has built. */
export function built(name: string): string {
  return join(project, 'dist/packages', name);
}
