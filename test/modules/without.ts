import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { cp, mkdir, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { modules } from '../../src/modules.ts';
import { project } from '../tidy/sources.ts';

/** Modules that other files still import; each that leaves this list can be taken out. */
export const stillImported: ReadonlySet<string> = new Set([
  ...['access', 'acme', 'assets', 'batch', 'breadcrumbs', 'cache', 'changes', 'cluster', 'compare'],
  ...['compression', 'console', 'drafts', 'files', 'headers', 'hosts', 'keys', 'login', 'logs'],
  ...['nodes', 'peers', 'proxy', 'rates', 'redirects', 'rendering', 'rules', 'status', 'tables'],
  ...['transfer', 'upkeep', 'visitors', 'visits', 'webhooks'],
]);

/** The modules that can be taken out. */
export const removable: readonly string[] = modules
  .map(({ name }) => name)
  .filter((name) => !stillImported.has(name));

/** A module, and those that need it. */
export function withThoseThatNeed(name: string): readonly string[] {
  const all = new Set([name]);
  for (const one of all) {
    for (const other of modules) if (other.needs?.includes(one) === true) all.add(other.name);
  }
  return [...all];
}

/**
 * Copies the project into a folder without some modules: without their folders, and their lines in
 * the lists.
 */
export async function copyWithout(folder: string, names: readonly string[]): Promise<void> {
  for (const name of ['src', 'bin', 'conf', 'package.json', 'tsconfig.json']) {
    await cp(join(project, name), join(folder, name), { recursive: true });
  }
  await mkdir(join(folder, 'console'));
  for (const name of ['node_modules', 'public']) {
    await symlink(join(project, name), join(folder, name));
  }
  for (const name of names) {
    await rm(join(folder, 'src/modules', name), { recursive: true });
    for (const list of ['src/modules.ts', 'src/sections.ts']) removeLines(join(folder, list), name);
  }
}

/** Removes what a list imports from the folder of a module. */
function removeLines(file: string, name: string): void {
  if (!existsSync(file)) return;
  const text = readFileSync(file, 'utf8');
  const imports = new RegExp(`^import \\{([^}]*)\\} from '\\./modules/${name}/[^']*';\n`, 'gm');
  const imported = [...text.matchAll(imports)].flatMap(([, list = '']) =>
    list.split(',').map((one) => one.trim()),
  );
  const without = imported.reduce(
    (rest, one) => rest.replace(new RegExp(`\\b${one}\\b,?`, 'g'), ''),
    text.replace(imports, ''),
  );
  writeFileSync(file, without);
}
