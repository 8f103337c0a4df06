import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cp, mkdir, open, readdir, readFile, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';
import { project } from './sources.ts';
import { unpackNpmPackage } from './npm-package.ts';
import type { Target } from './targets.ts';

const run = promisify(execFile);

/** The flags with which bin/waymark.js starts Node.js; it gives the reasons. */
const nodeFlags = [
  '--expose-gc',
  '--no-parallel-scavenge',
  '--no-allocation-site-pretenuring',
  '--max-semi-space-size=16',
];

/** The folders of a build. */
interface Folders {
  /** The folder that `bundle` has written. */
  readonly bundled: string;
  /** Unfinished files of the build. */
  readonly work: string;
  /** Archives of npm packages, for further builds. */
  readonly cache: string;
}

/**
 * Builds the single executable of a target. Its files, with LMDB's addon, are assets that main.cjs
 * unpacks at the first start.
 */
export async function buildExecutable(
  target: Target,
  { bundled, work, cache }: Folders,
  output: string,
): Promise<void> {
  const node = await unpackNpmPackage(target.packages.node, cache);
  const lmdb = await unpackNpmPackage(target.packages.lmdb, cache);
  const files = join(work, `files-${target.arch}`);
  await cp(bundled, files, { recursive: true });
  await addAddon(target, lmdb, files);
  const paths = await filesBelow(files);
  const hashes = await Promise.all(
    paths.map(async (path) => [path, sha256(await readFile(join(files, path)))] as const),
  );
  const manifest = join(work, `manifest-${target.arch}.json`);
  await writeFile(manifest, JSON.stringify({ files: Object.fromEntries(hashes) }));
  const config = join(work, `sea-${target.arch}.json`);
  await writeFile(
    config,
    JSON.stringify({
      main: join(project, 'packaging/main.cjs'),
      executable: join(node, 'bin/node'),
      output,
      disableExperimentalSEAWarning: true,
      execArgv: nodeFlags,
      assets: {
        'manifest.json': manifest,
        ...Object.fromEntries(paths.map((path) => [`files/${path}`, join(files, path)])),
      },
    }),
  );
  // The Node.js of the build, which runs on this machine, writes into that of the target.
  await run(process.execPath, ['--build-sea', config]);
  await requireElf(output, target);
}

/** Adds the addon for glibc with Node-API, and the file by which lmdb finds it. */
async function addAddon({ packages }: Target, from: string, files: string): Promise<void> {
  const into = join(files, 'node_modules', packages.lmdb.name);
  await mkdir(into, { recursive: true });
  for (const name of ['package.json', 'index.js', 'node.napi.glibc.node']) {
    await cp(join(from, name), join(into, name));
  }
}

/** The paths of all files below a folder, relative to it, in order. */
async function filesBelow(folder: string): Promise<readonly string[]> {
  const found = await readdir(folder, { recursive: true, withFileTypes: true });
  return found
    .filter((file) => file.isFile())
    .map((file) => relative(folder, join(file.parentPath, file.name)))
    .sort();
}

/** Rejects unless a file is an executable for the processor of a target. */
async function requireElf(path: string, { arch, elfMachine }: Target): Promise<void> {
  const file = await open(path);
  try {
    const { buffer } = await file.read(Buffer.alloc(20), 0, 20, 0);
    const isElf = buffer.toString('latin1', 0, 4) === '\u007fELF';
    if (isElf && buffer.readUInt16LE(18) === elfMachine) return;
    throw new Error(`${path} is no executable for ${arch}`);
  } finally {
    await file.close();
  }
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
