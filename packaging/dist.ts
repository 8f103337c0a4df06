import { cp, mkdir, readdir, readFile, rename, rm, symlink } from 'node:fs/promises';
import { basename, join, relative } from 'node:path';
import { build } from 'esbuild';
import { bundleSources, project } from './sources.ts';

/**
 * Writes the programs of the npm package, and the client, into a folder. npm installs the packages
 * that they import.
 */
async function buildDist(folder: string): Promise<void> {
  await bundleSources(folder, { packages: 'external', target: 'node24' });
  // Browsers load it as well: it shares no file with the server.
  await build({
    entryPoints: ['src/cli/client/client.ts'],
    outdir: join(folder, 'cli/client'),
    bundle: true,
    format: 'esm',
    packages: 'external',
    logLevel: 'warning',
    absWorkingDir: project,
  });
}

/**
 * Writes the npm package as it is installed, for tests: its programs, with links to its other
 * files. Resolves to the path of `bin/waymark.js` in it. A folder that is current stays, because
 * other tests may run from it.
 */
export async function buildInstalled(folder: string): Promise<string> {
  const draft = `${folder}.${process.pid}`;
  await mkdir(draft, { recursive: true });
  for (const name of ['bin', 'package.json']) {
    await cp(join(project, name), join(draft, name), { recursive: true });
  }
  for (const name of ['public', 'conf']) await symlink(join(project, name), join(draft, name));
  await buildDist(join(draft, 'dist'));
  if (await haveSameFiles(draft, folder)) {
    await rm(draft, { recursive: true });
  } else {
    await rm(folder, { recursive: true, force: true });
    await rename(draft, folder);
  }
  return join(folder, 'bin/waymark.js');
}

async function haveSameFiles(one: string, other: string): Promise<boolean> {
  const filesOf = async (folder: string): Promise<readonly string[]> => {
    const entries = await readdir(folder, { recursive: true, withFileTypes: true });
    const files = entries.filter((entry) => entry.isFile());
    return files.map(({ parentPath, name }) => relative(folder, join(parentPath, name))).sort();
  };
  const [files, others] = await Promise.all([filesOf(one), filesOf(other).catch(() => [])]);
  if (files.join() !== others.join()) return false;
  for (const name of files) {
    const texts = await Promise.all([one, other].map((folder) => readFile(join(folder, name))));
    if (texts[0]?.equals(texts[1] ?? Buffer.of()) !== true) return false;
  }
  return true;
}

// `npm run build`
if (basename(process.argv[1] ?? '') === basename(import.meta.filename)) {
  const folder = join(project, 'dist');
  const isOld = (name: string): boolean => name !== 'packages';
  for (const name of (await readdir(folder).catch(() => [])).filter(isOld)) {
    await rm(join(folder, name), { recursive: true });
  }
  await buildDist(folder);
}
