import { execFileSync } from 'node:child_process';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';

/**
 * Which tests run: those of `npm test`; all; or the rest, which `npm test` leaves out: the files
 * whose names end in `.full.test.ts`, and the tests of the packages.
 */
export type Tier = 'main' | 'all' | 'rest';

/** The test files that run in one process. */
export interface FileGroup {
  readonly name: string;
  readonly files: readonly string[];
}

/**
 * Which folders of `test/` share a process: a file spends much of its time on loading the code that
 * it tests, and so a few processes load it, not one for each folder. The groups that take longest
 * start first. `parts` processes share the files of a folder whose tests wait for a browser.
 */
const groups: readonly { readonly folders: readonly string[]; readonly parts?: number }[] = [
  { folders: ['browser'], parts: 3 },
  { folders: ['api', 'core/operations', 'modules/drafts', 'modules/rules', 'modules/tables'] },
  { folders: ['server', 'core/pipeline', 'modules/console', 'modules/mcp'] },
  {
    folders: [
      ...['webhooks', 'nodes', 'hosts', 'follow', 'access', 'login'],
      ...modules('webhooks', 'nodes', 'hosts', 'follow', 'access', 'login', 'peers'),
    ],
  },
  {
    folders: [
      ...['acme', 'cache', 'observability', 'outbound', 'proxy', 'static', 'assets'],
      ...['core/outbound', 'core/report'],
      ...modules('acme', 'cache', 'logs', 'proxy', 'files', 'assets', 'rates'),
    ],
  },
  { folders: ['cli', 'modules/transfer', 'modules/upkeep', 'modules/keys'] },
  { folders: ['store', 'cluster', 'faults', 'core/log', 'modules/cluster', 'modules/visits'] },
  {
    folders: [...['server/corpus', 'server/h1', 'server/h2', 'server/tls'], 'core/server'],
  },
  {
    folders: [
      ...['breadcrumbs', 'client', 'compression', 'config', 'console', 'convert', 'http', 'model'],
      ...['pages', 'rendering', 'rules', 'site', 'tables', 'visitors'],
      ...['core', 'modules'],
    ],
  },
  { folders: ['docs', 'tidy'] },
];

function modules(...names: readonly string[]): readonly string[] {
  return names.map((name) => `modules/${name}`);
}

/** Files that set the environment of others, which they import: each has its own process. */
const alone = /(?:^|\/)same-tests\.full\.test\.ts$/;

/** The test files of the project in this folder. */
export function testFiles(tier: Tier): readonly string[] {
  const found = globSync('test/**/*.test.ts', { exclude: ['**/node_modules'] }).sort();
  if (tier === 'all') return found;
  return found.filter((file) => file.endsWith('.full.test.ts') === (tier === 'rest'));
}

/**
 * The test files whose outcome may depend on the files that differ from a commit: those files, and
 * the files that import one of them, directly or through others.
 */
export function filesOfChange(files: readonly string[], commit: string): readonly string[] {
  const git = (...words: string[]): readonly string[] =>
    execFileSync('git', words, { encoding: 'utf8' }).split('\n').filter(Boolean);
  const changed = new Set([
    ...git('diff', '--name-only', commit),
    ...git('ls-files', '--others', '--exclude-standard'),
  ]);
  return filesThatReach(files, (file) => changed.has(file));
}

/** The files that meet a condition or import one that does, directly or through others. */
export function filesThatReach(
  files: readonly string[],
  isMeant: (file: string) => boolean,
): readonly string[] {
  const known = new Map<string, boolean>();
  const reaches = (file: string): boolean => {
    const before = known.get(file);
    if (before !== undefined) return before;
    // A circle of imports adds nothing.
    known.set(file, false);
    const result = isMeant(file) || importsOf(file).some(reaches);
    known.set(file, result);
    return result;
  };
  return files.filter(reaches);
}

const importedFile = /(?:from|import\(?|URL\() ?'(\.[^']+)'/g;

function importsOf(file: string): readonly string[] {
  if (!/\.[jt]sx?$/.test(file) || !existsSync(file)) return [];
  const text = readFileSync(file, 'utf8');
  return [...text.matchAll(importedFile)].map(([, path = '']) => join(dirname(file), path));
}

/** Divides test files among processes, in the order in which they start. */
export function groupFiles(files: readonly string[]): readonly FileGroup[] {
  const divided = Map.groupBy(files, groupOf);
  return [...divided]
    .sort(([one], [other]) => rankOf(one) - rankOf(other))
    .flatMap(([name, those]) => inParts(name, those));
}

function groupOf(file: string): string {
  if (alone.test(file)) return file;
  const folder = dirname(file).split(sep).slice(1).join('/');
  const isIn = (name: string): boolean => `${folder}/`.startsWith(`${name}/`);
  const named = groups.flatMap(({ folders }) => folders).filter(isIn);
  const [closest] = named.sort((one, other) => other.length - one.length);
  const group = groups.find(({ folders }) => folders.some((name) => name === closest));
  if (group === undefined) return dirname(file).split(sep).slice(0, 2).join(sep);
  return nameOf(group.folders);
}

function nameOf(folders: readonly string[]): string {
  return folders.length === 1 ? `test/${folders[0]}` : `test/{${folders.join()}}`;
}

function rankOf(name: string): number {
  const at = groups.findIndex(({ folders }) => nameOf(folders) === name);
  return at === -1 ? groups.length : at;
}

/** Deals the files of a group to its processes. */
function inParts(name: string, files: readonly string[]): readonly FileGroup[] {
  const { parts = 1 } = groups[rankOf(name)] ?? {};
  const dealt = Object.values(Object.groupBy(files, (file) => files.indexOf(file) % parts));
  return dealt.map((those = [], at) => ({
    name: dealt.length === 1 ? name : `${name} (${at + 1} of ${dealt.length})`,
    files: those,
  }));
}
