import { spawn } from 'node:child_process';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, rm } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { freePort } from '../free-port.ts';
import { project } from '../tidy/sources.ts';

/** The release of the suite on npm, for a run without CACHE_TESTS. */
const release = 'http-cache-tests@0.4.5';

/** One case of the suite. */
export interface Case {
  readonly id: string;
  readonly name: string;
  /** `required` if absent. */
  readonly kind?: 'required' | 'optimal' | 'check';
  readonly depends_on?: readonly string[];
  readonly browser_only?: boolean;
}

/** The result of each case: true, or an error's name and message. */
export type Results = Readonly<Record<string, true | readonly [string, string] | undefined>>;

/** The suite of http-tests/cache-tests (RFC 9111), of the release on npm or of a folder. */
export interface Suite {
  readonly cases: readonly Case[];
  /** Starts the suite's source; resolves to its port. */
  startSource(): Promise<{ readonly port: number; stop(): void }>;
  /** Runs all cases against a cache in front of the source. */
  run(origin: string): Promise<Results>;
}

/**
 * Copies a suite below node_modules, so that it finds the packages that it imports.
 */
export async function prepareSuite(given: string | undefined): Promise<Suite> {
  const folder = join(project, 'node_modules', '.cache', 'http-cache-tests');
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  if (given === undefined) await unpackRelease(folder);
  else await cp(given, folder, { recursive: true });
  const isNewer = existsSync(join(folder, 'test-engine'));
  const engine = isNewer ? join(folder, 'test-engine') : folder;
  const { default: groups } = (await load(join(folder, 'tests/index.mjs'))) as {
    readonly default: readonly { readonly tests: readonly Case[] }[];
  };
  return {
    cases: groups.flatMap(({ tests }) => tests).filter((one) => one.browser_only !== true),
    startSource: () => startSource(engine),
    async run(origin) {
      const { runTests, getResults } = (await load(join(engine, 'client/runner.mjs'))) as {
        readonly runTests: (...given: readonly unknown[]) => Promise<void>;
        readonly getResults: () => Results;
      };
      await (isNewer ? runTests(groups, false, origin) : runTests(groups, ask, false, origin));
      return getResults();
    },
  };
}

/**
 * Node's fetch adds `Cache-Control: no-cache` to a request with a precondition, unless it has a
 * Cache-Control. The newer suite sets meaningless values itself; the older one did not need them.
 */
function ask(url: string, { cache: _cache, headers = [], ...init }: RequestInit = {}) {
  const fields = new Headers(headers);
  if (!fields.has('cache-control')) fields.set('Cache-Control', 'nothing-to-see-here');
  if (!fields.has('pragma')) fields.set('Pragma', 'foo');
  return fetch(url, { ...init, headers: fields });
}

async function unpackRelease(folder: string): Promise<void> {
  const run = promisify(execFile);
  const { stdout } = await run('npm', ['pack', release, '--silent'], { cwd: folder });
  await run('tar', ['xzf', stdout.trim(), '--strip-components=1'], { cwd: folder });
}

function load(file: string): Promise<unknown> {
  return import(pathToFileURL(file).href);
}

async function startSource(engine: string): ReturnType<Suite['startSource']> {
  const port = await freePort();
  const child = spawn(process.execPath, [join(engine, 'server/server.mjs')], {
    cwd: engine,
    env: {
      npm_config_protocol: 'http',
      npm_config_port: String(port),
      npm_config_pidfile: join(engine, 'server.pid'),
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(child.stdout, 'data');
  child.stdout.resume();
  return { port, stop: () => child.kill() };
}
