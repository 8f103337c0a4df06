import { tap, type Base, type Spawn, type SpawnOpts } from '@tapjs/core';
import { execFileSync } from 'node:child_process';
import { existsSync, globSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { delimiter, dirname, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

/**
 * `npm test`: tap runs every test file, those of one folder in one process: a file spends most of
 * its time on loading the code that it tests, and the files of a folder load the same code. Each
 * process reports in TAP. The report of a folder is printed when the folder is done. At the end
 * come all failures again, the skipped tests with their reasons (a skip without a reason fails),
 * and the line `N passed, N failed`.
 *
 * Tests start commands from the npm package, which starts faster than the sources.
 *
 * `--also DIR` runs tests again with the `node` in DIR: all, or those below `test/NAME` for each
 * `--folder NAME`.
 */
const { values: given } = parseArgs({
  options: {
    also: { type: 'string' },
    folder: { type: 'string', multiple: true },
    // Longer than the timeout of any test: a handle that a test has left open can keep a process
    // alive.
    'silence-ms': { type: 'string', default: '150000' },
  },
});

/** Folders that take long: these and the folders below them start first. */
const slow = ['browser', 'api', 'cli', 'server', 'store'];

const flags = [
  `--import=${import.meta.resolve('./compile-cache.js')}`,
  '--test',
  '--test-isolation=none',
  '--test-timeout=60000',
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
  const { also, folder: wanted } = given;
  const node = `${also}/node`;
  const versionOf = () => execFileSync(node, ['--version'], { encoding: 'utf8' }).trim();
  const suffix = also === undefined ? '' : ` on Node.js ${versionOf()}`;
  const topOf = (path: string): string => path.split(sep)[1] ?? '';
  // A process for each folder of test/, and for each folder of test/server, the slowest of all.
  const folderOf = (file: string): string =>
    dirname(file)
      .split(sep)
      .slice(0, topOf(file) === 'server' ? 3 : 2)
      .join(sep);
  const rank = (folder: string): number => (slow.includes(topOf(folder)) ? 0 : 1);
  const found = globSync('test/**/*.test.ts', { exclude: ['**/node_modules'] }).sort();
  return Object.entries(Object.groupBy(found, folderOf))
    .sort(([one], [other]) => rank(one) - rank(other))
    .flatMap(([name, files = []]) => {
      const run = { name, files, node: process.execPath };
      if (also === undefined || wanted?.includes(topOf(name)) === false) return run;
      return [run, { files, name: name + suffix, node }];
    });
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
