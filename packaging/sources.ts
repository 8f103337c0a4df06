import { globSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { build, type BuildOptions, type Metafile, type Plugin } from 'esbuild';

/** The folder of the project. */
export const project = dirname(import.meta.dirname);

/** The command line, what the npm package exports, and what modules import. */
const programs = ['src/cli/cli.ts', 'src/main.ts', 'src/core/custom/contract.ts'];

/** How a file starts a thread or a process that runs the same file. */
const ownThread = /(?<start>new Worker|fork)\(new URL\(import\.meta\.url\)/;

/**
 * Bundles `src/` into a folder, because Node.js takes longer to load 900 files than to run them:
 *
 * - `cli.js` and `main.js`, the files that start a thread or process of themselves, so that it
 *   loads no other code, and the chunks that all of these share;
 * - `serve.js`, the command line with the command `serve` only. It shares no chunk with the others:
 *   a start of the server would load a hundred.
 *
 * Resolves to the names of the bundled packages and files.
 */
export async function bundleSources(
  outdir: string,
  options: Pick<BuildOptions, 'banner' | 'define' | 'external' | 'packages' | 'target'>,
): Promise<Metafile> {
  const threads = globSync('src/**/*.ts', { cwd: project }).filter((path) =>
    ownThread.test(readFileSync(join(project, path), 'utf8')),
  );
  const common = {
    entryNames: '[name]',
    outdir,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    // Less text to load. Names stay as they are, for the stacks of errors in the log.
    minifySyntax: true,
    minifyWhitespace: true,
    metafile: true,
    logLevel: 'warning',
    absWorkingDir: project,
    ...options,
  } satisfies BuildOptions;
  const { metafile } = await build({
    ...common,
    entryPoints: [...programs, ...threads],
    plugins: [lazyPackages],
  });
  await build({
    ...common,
    entryPoints: { serve: 'src/cli/cli.ts' },
    plugins: [lazyPackages, otherCommands, separateThreads(threads)],
  });
  return metafile;
}

/** What the command line loads when it is needed, and `serve.js` needs, too. */
const neededToServe = /\/(?:serve|program|read|sections|modules|loader)\.ts$/;

/** Leaves out the commands that `serve.js` never runs. */
const otherCommands: Plugin = {
  name: 'other-commands',
  setup(bundler) {
    bundler.onResolve({ filter: /^\.{1,2}\/.*\.ts$/ }, ({ kind, importer, path }) => {
      const hasCommands = /\/(?:cli\/cli|module)\.ts$/.test(importer);
      const isLoaded = kind === 'dynamic-import' && hasCommands;
      return isLoaded && !neededToServe.test(path)
        ? { path: 'other-command', namespace: 'other-command' }
        : undefined;
    });
    bundler.onLoad({ filter: /^/, namespace: 'other-command' }, () => ({
      contents: "throw new Error('This program only has the command `serve`.');",
    }));
  },
};

/** Lets the files that start a thread of themselves start their own file of the bundle. */
function separateThreads(threads: readonly string[]): Plugin {
  return {
    name: 'separate-threads',
    setup(bundler) {
      const paths = new Set(threads.map((path) => join(project, path)));
      bundler.onLoad({ filter: /\/src\/.*\.ts$/ }, async ({ path }) => {
        if (!paths.has(path)) return undefined;
        const file = JSON.stringify(`./${basename(path, '.ts')}.js`);
        const text = await readFile(path, 'utf8');
        const separate = `$<start>(new URL(${file}, import.meta.url)`;
        return { contents: text.replace(ownThread, separate), loader: 'ts' };
      });
    },
  };
}

/**
 * Lets esbuild see the packages that src/core/values/lazy-packages.ts loads by a `require` of its own.
 */
const lazyPackages: Plugin = {
  name: 'lazy-packages',
  setup(bundler) {
    const own = 'const require = createRequire(import.meta.url);\n';
    bundler.onLoad({ filter: /\/src\/.*\/lazy-packages\.ts$/ }, async ({ path }) => {
      const text = await readFile(path, 'utf8');
      if (!text.includes(own)) throw new Error(`${path} does not contain: ${own}`);
      // Without its packages, the bundle needs that `require`.
      const isAlone = bundler.initialOptions.packages === 'external';
      return { contents: isAlone ? text : text.replace(own, ''), loader: 'ts' };
    });
  },
};
