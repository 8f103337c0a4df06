import { globSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { build, type BuildOptions, type Metafile, type Plugin } from 'esbuild';

/** The folder of the project. */
export const project = dirname(import.meta.dirname);

/** The command line, and what the npm package exports. */
const programs = ['src/cli/cli.ts', 'src/main.ts'];

/**
 * Bundles `src/` into a folder of few files, because Node.js takes longer to load 600 files than to
 * run them: `cli.js`, `main.js` and the chunks that they share. Each file that starts a thread of
 * itself stays a separate file, so that the thread loads no other code. Resolves to the names of
 * the bundled packages and files.
 */
export async function bundleSources(
  outdir: string,
  options: Pick<BuildOptions, 'banner' | 'define' | 'external' | 'packages' | 'target'>,
): Promise<Metafile> {
  const threads = globSync('src/**/*.ts', { cwd: project }).filter((path) =>
    readFileSync(join(project, path), 'utf8').includes('new Worker(new URL(import.meta.url)'),
  );
  const { metafile } = await build({
    entryPoints: [...programs, ...threads],
    // src/version.ts expects its file right below the folder of the package.
    entryNames: '[name]',
    outdir,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    plugins: [lazyPackages],
    metafile: true,
    logLevel: 'warning',
    absWorkingDir: project,
    ...options,
  });
  return metafile;
}

/**
 * Lets esbuild see the packages that src/model/lazy-packages.ts loads by a `require` of its own.
 */
const lazyPackages: Plugin = {
  name: 'lazy-packages',
  setup(bundler) {
    const own = 'const require = createRequire(import.meta.url);\n';
    bundler.onLoad({ filter: /\/src\/model\/lazy-packages\.ts$/ }, async ({ path }) => {
      const text = await readFile(path, 'utf8');
      if (!text.includes(own)) throw new Error(`${path} does not contain: ${own}`);
      // Without its packages, the bundle needs that `require`.
      const isAlone = bundler.initialOptions.packages === 'external';
      return { contents: isAlone ? text : text.replace(own, ''), loader: 'ts' };
    });
  },
};
