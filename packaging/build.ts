import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import packageJson from '../package.json' with { type: 'json' };
import { bundle } from './bundle.ts';
import { buildDeb } from './deb.ts';
import { buildExecutable } from './executable.ts';
import { project } from './sources.ts';
import { targets } from './targets.ts';

const run = promisify(execFile);

/**
 * `npm run package [-- x64 arm64]`: builds the packages of docs/design/packages.md into
 * dist/packages.
 */
async function main(archs: readonly string[]): Promise<void> {
  const chosen = targets.filter(({ arch }) => archs.length === 0 || archs.includes(arch));
  const output = join(project, 'dist/packages');
  const work = await mkdtemp(join(tmpdir(), 'waymark-package-'));
  try {
    await run('npm', ['run', '--silent', 'prepack'], { cwd: project });
    await rm(output, { recursive: true, force: true });
    await mkdir(output, { recursive: true });
    const bundled = join(work, 'bundled');
    await mkdir(bundled);
    await bundle(bundled, await commitName());
    const cache = join(project, 'node_modules/.cache/packages');
    await mkdir(cache, { recursive: true });
    for (const target of chosen) {
      const name = `waymark-${packageJson.version}-linux-${target.arch}`;
      const executable = join(output, name);
      await buildExecutable(target, { bundled, work, cache }, executable);
      await buildDeb(target, { executable, bundled, work, output });
    }
    await writeBillOfMaterials(join(output, `waymark-${packageJson.version}.cdx.json`));
    await writeChecksums(output);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** The commit of the working tree; with `-dirty` if files differ from it. */
async function commitName(): Promise<string> {
  const git = async (...words: readonly string[]) =>
    (await run('git', words, { cwd: project })).stdout.trim();
  const commit = await git('rev-parse', '--short=12', 'HEAD');
  return (await git('status', '--porcelain', '--untracked-files=no')) === ''
    ? commit
    : `${commit}-dirty`;
}

/** Writes the dependencies of production as CycloneDX. */
async function writeBillOfMaterials(path: string): Promise<void> {
  const words = ['sbom', '--omit=dev', '--sbom-format=cyclonedx', '--sbom-type=application'];
  const { stdout } = await run('npm', words, { cwd: project, maxBuffer: 64 << 20 });
  await writeFile(path, stdout);
}

/** Writes SHA256SUMS, which `sha256sum --check` reads. */
async function writeChecksums(folder: string): Promise<void> {
  const lines: string[] = [];
  for (const name of (await readdir(folder)).sort()) {
    const hash = createHash('sha256');
    for await (const chunk of createReadStream(join(folder, name))) hash.update(chunk as Buffer);
    lines.push(`${hash.digest('hex')}  ${name}\n`);
  }
  await writeFile(join(folder, 'SHA256SUMS'), lines.join(''));
}

await main(process.argv.slice(2));
