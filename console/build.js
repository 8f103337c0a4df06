// Builds the console into public/console, unless that is current (docs/design/console.md#framework-and-packages).
// In an installation without development packages it does nothing.
import { createHash } from 'node:crypto';
import { existsSync, globSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('.', import.meta.url));
const target = fileURLToPath(new URL('../public/console', import.meta.url));

/** A hash of all sources of the console and of the versions of its packages. */
export function sourcesHash() {
  const hash = createHash('sha256');
  const sources = globSync('**/*.{ts,tsx,css,html,js,json}', { cwd: folder }).sort();
  for (const path of sources) hash.update(`${path}\0`).update(readFileSync(`${folder}/${path}`));
  return hash.update(readFileSync(`${folder}/../package.json`)).digest('hex');
}

function isCurrent() {
  const file = `${target}/build.json`;
  return existsSync(file) && JSON.parse(readFileSync(file, 'utf8')).sources === sourcesHash();
}

async function build() {
  const { build: buildWithVite } = await import('vite');
  const made = `${target}.${process.pid}`;
  await buildWithVite({
    configFile: `${folder}/vite.config.js`,
    logLevel: 'warn',
    build: { outDir: made },
  });
  writeFileSync(`${made}/build.json`, JSON.stringify({ sources: sourcesHash() }));
  replaceBy(made);
}

/**
 * The former build answers until the new one is complete: a server may read it meanwhile. Another
 * process may build at the same time, such as that of another test file.
 */
function replaceBy(made) {
  const former = `${made}.former`;
  try {
    renameSync(target, former);
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
  }
  try {
    renameSync(made, target);
  } catch (error) {
    if (!isCurrent()) throw error;
  }
  for (const left of [former, made]) rmSync(left, { recursive: true, force: true });
}

function hasVite() {
  try {
    import.meta.resolve('vite');
    return true;
  } catch {
    return false;
  }
}

if (!isCurrent() && hasVite()) await build();
