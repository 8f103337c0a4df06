import { cp, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { bundleSources, project } from './sources.ts';

/** Packages that need their own files, next to the bundle: an addon, and modules for browsers. */
const unbundled = ['lmdb', 'liquidjs', 'dompurify'];

/** Packages that only npm installs, for its machine: the program also runs without them. */
const optional = ['sharp'];

/** Their dependencies that are left out, because they also run without them. */
const left = new Set(['msgpackr-extract', 'node-addon-api', 'commander', '@types/trusted-types']);

/** Files of packages that no program reads. */
const unread =
  /\.(?:map|md|ts|cts|mts|h|cc?|cpp|gyp|lock|tgz)$|(?:^|\/)(?:src|dependencies|test|bin)\//;

/**
 * Writes the files for all machines into a folder: the bundle, the files for browsers, the sample
 * site and the packages that are not bundled. `waymark --version` prints `commit`.
 */
export async function bundle(folder: string, commit: string): Promise<void> {
  const { inputs } = await bundleSources(join(folder, 'app'), {
    target: 'node26',
    external: [...unbundled, ...optional],
    define: { WAYMARK_COMMIT: JSON.stringify(commit) },
    // For packages in the form of CommonJS.
    banner: {
      js:
        "import { createRequire as createBundleRequire } from 'node:module';" +
        'const require = createBundleRequire(import.meta.url);',
    },
  });
  await writeFile(join(folder, 'app/package.json'), '{"type":"module"}\n');
  // jsdom looks for this file when it is loaded; the thread that renders pages has no
  // XMLHttpRequest.
  await writeFile(join(folder, 'app/xhr-sync-worker.js'), '');
  for (const name of ['public', 'conf']) {
    await cp(join(project, name), join(folder, name), { recursive: true });
  }
  const copied = await copyPackages(folder);
  const bundled = Object.keys(inputs).flatMap((path) => packageFolder(path) ?? []);
  await writeFile(join(folder, 'LICENSES'), await licences([...bundled, ...copied]));
}

/** Copies the packages that are not bundled, with their dependencies; returns their folders. */
async function copyPackages(folder: string): Promise<readonly string[]> {
  const copied = new Set<string>();
  const waiting = unbundled.map((name) => join('node_modules', name));
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (copied.has(path)) continue;
    copied.add(path);
    const from = join(project, path);
    for (const file of await readdir(from, { recursive: true, withFileTypes: true })) {
      if (!file.isFile()) continue;
      const name = join(file.parentPath, file.name).slice(from.length + 1);
      if (unread.test(name) || name.startsWith('node_modules/')) continue;
      await mkdir(dirname(join(folder, path, name)), { recursive: true });
      await cp(join(from, name), join(folder, path, name));
    }
    const { dependencies = {} } = JSON.parse(
      await readFile(join(from, 'package.json'), 'utf8'),
    ) as { dependencies?: Readonly<Record<string, string>> };
    for (const name of Object.keys(dependencies)) {
      if (!left.has(name)) waiting.push(join('node_modules', name));
    }
  }
  return [...copied];
}

/** The folder of the package that a file belongs to; undefined for a file of Waymark. */
function packageFolder(path: string): string | undefined {
  return /^node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0];
}

/** The licences of packages, one after the other. */
async function licences(folders: readonly string[]): Promise<string> {
  const texts: string[] = [];
  for (const folder of [...new Set(folders)].sort()) {
    const from = join(project, folder);
    const { name, version, license } = createRequire(import.meta.url)(
      join(from, 'package.json'),
    ) as { name: string; version: string; license?: string };
    const file = (await readdir(from)).find((one) => /^licen[cs]e/i.test(one));
    const text = file === undefined ? '' : await readFile(join(from, file), 'utf8');
    texts.push(`${name} ${version} (${license ?? 'no licence named'})\n\n${text.trim()}\n`);
  }
  return texts.join(`\n${'-'.repeat(80)}\n\n`);
}
