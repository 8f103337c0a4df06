import { tap, type Base, type Spawn, type SpawnOpts } from '@tapjs/core';
import { execFileSync } from 'node:child_process';
import { existsSync, globSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { delimiter, dirname, join, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

/**
 * `npm test`: tap runs every test file, those of one folder in one process: a file spends most of
 * its time on loading the code that it tests, and the files of a folder load the same code. For
 * the same reason, folders with short tests share a process. Each process reports in TAP. Its
 * report is printed when it is done. At the end come all failures again, the skipped tests with
 * their reasons (a skip without a reason fails), and the line `N passed, N failed`.
 *
 * Tests start commands from the npm package, which starts faster than the sources.
 *
 * `--also DIR` runs tests again with the `node` in DIR: all, or those in `test/PATH`, a folder or a
 * file, for each `--only PATH`.
 */
const { values: given } = parseArgs({
  options: {
    also: { type: 'string' },
    only: { type: 'string', multiple: true },
    // Longer than the timeout of any test: a handle that a test has left open can keep a process
    // alive.
    'silence-ms': { type: 'string', default: '400000' },
  },
});

/** Folders that take long: these and the folders below them start first, in this order. */
const slow = ['browser', 'api', 'cli', 'server', 'store', 'webhooks', 'nodes'];

/** Folders that share a process. */
const sharing = [
  ...[['breadcrumbs', 'compression', 'config', 'console', 'http', 'model', 'rules', 'tables']],
  ...[['client', 'hosts', 'pages', 'rendering', 'site', 'visitors']],
  ...[['docs', 'tidy']],
];

/** Folders that share a process when a few of their tests run again. */
const sharingAgain = [['cache', 'outbound', 'proxy', 'store', 'webhooks']];

const flags = [
  `--import=${import.meta.resolve('./compile-cache.js')}`,
  '--test',
  '--test-isolation=none',
  '--test-timeout=180000',
  `--test-reporter=${fileURLToPath(import.meta.resolve('./tap.ts'))}`,
];

/** The test files of a folder, and the program that runs them. */
interface FolderRun {
  readonly name: string;
  readonly files: readonly string[];
  readonly node: string;
}

type TapParser = Base['parser'];
type TapResult = Base['lists']['fail'][number];

const suite = tap();
// The exit code follows tap's results. The TAP that it joins from all folders is not printed.
suite.register();
suite.resume();
suite.setTimeout(0);
suite.jobs = availableParallelism() + 2;
suite.on('spawn', endIfSilent);

const program = await installedProgram();
const [passed, failures, skipped] = [[] as number[], [] as string[], [] as string[]];
await Promise.all(folderRuns().map(report));
suite.end();
if (skipped.length > 0) process.stdout.write(`\nSkipped:\n${skipped.join('\n')}\n`);
if (failures.length > 0) process.stdout.write(`\nFailed:\n\n${failures.join('\n\n')}\n\n`);
const total = passed.reduce((sum, count) => sum + count, 0);
const left = skipped.length > 0 ? `, ${skipped.length} skipped` : '';
process.stdout.write(`${total} passed, ${failures.length} failed${left}\n`);
process.exitCode = failures.length === 0 && total > 0 ? 0 : 1;

function folderRuns(): readonly FolderRun[] {
  const found = globSync('test/**/*.test.ts', { exclude: ['**/node_modules'] }).sort();
  const runs = processesOf(found, sharing).map((run) => ({ ...run, node: process.execPath }));
  return [...runs, ...repeatedRuns(found)].sort((one, other) => rankOf(one) - rankOf(other));
}

/** The runs with another Node.js. */
function repeatedRuns(found: readonly string[]): readonly FolderRun[] {
  const { also, only = ['.'] } = given;
  if (also === undefined) return [];
  const node = `${also}/node`;
  const version = execFileSync(node, ['--version'], { encoding: 'utf8' }).trim();
  const files = only.flatMap((path) => {
    const place = join('test', path);
    const those = found.filter((file) => file === place || file.startsWith(join(place, sep)));
    if (those.length === 0) throw new Error(`${place} has no tests to run again.`);
    return those;
  });
  return processesOf(files, sharingAgain).map((run) => ({
    ...run,
    name: `${run.name} on Node.js ${version}`,
    node,
  }));
}

/** Which files run in one process. */
function processesOf(
  found: readonly string[],
  shared: readonly (readonly string[])[],
): readonly Pick<FolderRun, 'name' | 'files'>[] {
  // A process for each folder of test/, and for each folder of test/server, the slowest of all.
  const folderOf = (file: string): string => {
    const top = topOf(file);
    const together = shared.find((names) => names.includes(top));
    if (together !== undefined) return `test/{${together.join()}}`;
    const parts = dirname(file).split(sep);
    return parts.slice(0, top === 'server' ? 3 : 2).join(sep);
  };
  const groups = Object.entries(Object.groupBy(found, folderOf));
  return groups.map(([name, files = []]) => ({ name, files }));
}

/** The place in the order of starts. */
function rankOf({ files: [first = ''] }: FolderRun): number {
  const place = slow.indexOf(topOf(first));
  return place === -1 ? slow.length : place;
}

function topOf(file: string): string {
  return file.split(sep)[1] ?? '';
}

/** Builds the npm package of the project in this folder, if there is one; returns its program. */
async function installedProgram(): Promise<string | undefined> {
  if (!existsSync('packaging/dist.ts')) return undefined;
  const { buildInstalled } = await import('../packaging/dist.ts');
  return buildInstalled(resolve('node_modules/.cache/waymark-installed'));
}

/** Runs the tests of a folder, prints their report and adds up their results. */
async function report({ name, files, node }: FolderRun): Promise<void> {
  // Otherwise, tap loads its hooks by NODE_OPTIONS into this process and all its child processes.
  const env = [
    '-u',
    'NODE_CHANNEL_FD',
    `NODE_OPTIONS=${process.env.NODE_OPTIONS ?? ''}`,
    ...(program === undefined ? [] : [`WAYMARK_TEST_PROGRAM=${program}`]),
    `PATH=${resolve(dirname(node))}${delimiter}${process.env.PATH ?? ''}`,
  ];
  const options: SpawnOpts = { buffered: true, stdio: ['ignore', 'pipe', 'inherit'] };
  const done = suite.spawn('env', [...env, node, ...flags, ...files], options, name);
  const child = done.subtest;
  if (child === null) throw new Error(`tap has not started ${name}.`);
  const lines: string[] = [];
  collectLines(child.parser, lines);
  const results = await done;
  const { pass, fail } = child.counts;
  passed.push(pass);
  for (const result of child.lists.fail) failures.push(failureText(result, endOf(child)));
  for (const result of child.lists.skip) {
    if (result.skip === true) failures.push(failureText(result, 'Skipped without a reason.'));
    else skipped.push(title(result, result.fullname));
  }
  if (results?.ok !== true && fail === 0) failures.push(`✖ ${name} ${endOf(child)}`);
  process.stdout.write(
    `${name}: ${files.length} files, ${pass} passed, ${fail} failed\n${lines.join('\n')}\n`,
  );
}

/** Lets tap end a process that prints nothing for longer than any test may take. */
function endIfSilent(child: Spawn): void {
  const silenceMs = Number(given['silence-ms']);
  child.on('process', (spawned) => {
    child.setTimeout(silenceMs);
    spawned.stdout.on('data', () => {
      child.setTimeout(silenceMs);
    });
    // Processes that its tests have started may still hold its standard output open.
    spawned.once('exit', (_code, signal) => {
      if (signal !== null) spawned.stdout.destroy();
    });
  });
}

/** Why a process failed although none of its tests did. */
function endOf({ timedOut, options: { exitCode, signal }, errors }: Spawn): string {
  if (timedOut) return `printed nothing for ${given['silence-ms']} ms`;
  const reasons = errors.map(({ tapError }) => String(tapError));
  return [`ended with ${signal ?? exitCode ?? 'an error'}`, ...reasons].join(': ');
}

/** Collects a line for each test, as the parser reads it, under the lines of its suites. */
function collectLines(parser: TapParser, lines: string[], indent = ''): void {
  parser.on('child', (child) => {
    lines.push(`${indent}▶ ${child.name}`);
    collectLines(child, lines, `${indent}  `);
  });
  parser.on('assert', (result) => {
    if (!result.closingTestPoint || !result.ok)
      lines.push(`${indent}${title(result, result.name)}`);
  });
  parser.on('extra', (text) => {
    if (!/^(TAP version \d+)?\s*$/.test(text)) lines.push(text.trimEnd());
  });
}

function title({ ok, skip, todo, time }: TapResult, name: string): string {
  const mark = skip !== false ? '﹣' : todo !== false ? '□' : ok ? '✔' : '✖';
  const reason = typeof skip === 'string' ? ` # ${skip}` : '';
  return `${mark} ${name}${time === null ? '' : ` (${Math.round(time)} ms)`}${reason}`;
}

/** A failed test with the diagnostics that Node.js writes in TAP, or else with another reason. */
function failureText(result: TapResult, reason: string): string {
  const diag = result.diag as Readonly<Record<string, string>> | null;
  const { location, name, error = result.tapError ?? reason, stack = '' } = diag ?? {};
  const frames = stack.split('\n').filter(Boolean);
  return [
    title(result, result.fullname),
    ...(location === undefined ? [] : [`at ${location}`]),
    name === undefined ? error : `${name}: ${error}`,
    ...frames.map((line) => `    at ${line}`),
  ]
    .join('\n')
    .replaceAll('\n', '\n  ');
}
