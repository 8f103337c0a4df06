import { tap, type Base, type Spawn, type SpawnOpts } from '@tapjs/core';
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { availableParallelism, totalmem } from 'node:os';
import { delimiter, dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { prepareEverything, repeatedFiles } from './everything.ts';
import {
  filesOfChange,
  filesThatReach,
  groupFiles,
  testFiles,
  type FileGroup,
  type Tier,
} from './selection.ts';

/**
 * `npm test` and `npm run test:all`: tap runs the test files of a group in one process
 * (selection.ts). Each process reports in TAP. Its report is printed when it is done. At the end
 * come all failures again, the skipped tests with their reasons (a skip without a reason fails),
 * and the line `N passed, N failed`.
 *
 * Tests start commands from the npm package, which starts faster than the sources.
 *
 * `--tier main` is `npm test`; `all` has the rest, too: the files `*.full.test.ts`, the packages, and
 * some tests once more with Node.js 24. `--changed` runs only test files that import a file that
 * has changed since the last commit, or since a commit: `--changed=main`.
 */
const { values: given } = parseArgs({
  options: {
    tier: { type: 'string', default: 'main' },
    changed: { type: 'string' },
    // Longer than the timeout of any test: a handle that a test has left open can keep a process
    // alive.
    'silence-ms': { type: 'string', default: '400000' },
  },
  // `--changed` alone stands for the last commit.
  args: process.argv.slice(2).map((word) => (word === '--changed' ? '--changed=HEAD' : word)),
});

const flags = [
  `--import=${import.meta.resolve('./compile-cache.js')}`,
  '--test',
  '--test-isolation=none',
  '--test-timeout=180000',
  `--test-reporter=${fileURLToPath(import.meta.resolve('./tap.ts'))}`,
];

/** The memory that a process of tests may take, with the servers and the browser that it starts. */
const bytesOfProcess = 1.5 * 1024 * 1024 * 1024;

/** A group of test files, and the program that runs them. */
interface GroupRun extends FileGroup {
  readonly node: string;
}

type TapParser = Base['parser'];
type TapResult = Base['lists']['fail'][number];

const suite = tap();
// The exit code follows tap's results. The TAP that it joins from all folders is not printed.
suite.register();
suite.resume();
suite.setTimeout(0);
suite.jobs = jobsHere();
suite.on('spawn', endIfSilent);

const [passed, failures, skipped] = [[] as number[], [] as string[], [] as string[]];
const runs = await groupRuns(tierOf(given.tier)).catch((error: unknown) => {
  // tap would end the process without a word.
  process.stderr.write(`${String(error)}\n`);
  process.exit(1);
});
buildConsole();
const program = await installedProgram();
await Promise.all(runs.map(report));
suite.end();
if (skipped.length > 0) process.stdout.write(`\nSkipped:\n${skipped.join('\n')}\n`);
if (failures.length > 0) process.stdout.write(`\nFailed:\n\n${failures.join('\n\n')}\n\n`);
const total = passed.reduce((sum, count) => sum + count, 0);
const left = skipped.length > 0 ? `, ${skipped.length} skipped` : '';
process.stdout.write(`${total} passed, ${failures.length} failed${left}\n`);
const isNoneMeant = given.changed !== undefined && runs.length === 0;
process.exitCode = failures.length === 0 && (total > 0 || isNoneMeant) ? 0 : 1;

function tierOf(name: string): Tier {
  if (name === 'main' || name === 'all' || name === 'rest') return name;
  throw new Error(`--tier ${name} is unknown: write main, all or rest.`);
}

/** Two more processes than cores, because tests wait as well, if there is memory for them. */
function jobsHere(): number {
  const limit = process.constrainedMemory();
  const bytes = limit > 0 ? Math.min(limit, totalmem()) : totalmem();
  return Math.max(1, Math.min(availableParallelism() + 2, Math.floor(bytes / bytesOfProcess)));
}

async function groupRuns(tier: Tier): Promise<readonly GroupRun[]> {
  const { changed } = given;
  const found = testFiles(tier);
  const files = await withoutBrowser(changed === undefined ? found : filesOfChange(found, changed));
  const own = groupFiles(files).map((group) => ({ ...group, node: process.execPath }));
  return tier === 'main' || changed !== undefined ? own : [...own, ...furtherRuns()];
}

/** The files that can run here: those that need a browser are left out where none starts. */
async function withoutBrowser(files: readonly string[]): Promise<readonly string[]> {
  const needing = new Set(filesThatReach(files, (file) => file === 'test/browser/browser.ts'));
  if (needing.size === 0) return files;
  const { chromiumProblem } = await import('./browser/packaged-chromium.ts');
  const problem = await chromiumProblem();
  if (problem === undefined) return files;
  skipped.push(`﹣ ${needing.size} files of tests in a browser # none starts: ${problem}`);
  return files.filter((file) => !needing.has(file));
}

/** The tests of the packages, and those that run again with another Node.js. */
function furtherRuns(): readonly GroupRun[] {
  if (!existsSync('packaging/test')) return [];
  const { otherNode, packageTests, leftOut } = prepareEverything();
  skipped.push(...leftOut);
  const packages = { name: 'packaging/test', files: packageTests, node: process.execPath };
  const again =
    otherNode === undefined
      ? []
      : groupFiles(repeatedFiles()).map(({ name, files }) => ({
          name: `${name} on Node.js 24`,
          files,
          node: `${otherNode}/node`,
        }));
  return [...again, ...(packageTests.length === 0 ? [] : [packages])];
}

/**
 * Builds the console if its sources have changed since `npm ci`. A test file would build it as
 * well, but then the files are missing for a moment while other processes serve them.
 */
function buildConsole(): void {
  if (existsSync('console/build.js')) execFileSync(process.execPath, ['console/build.js']);
}

/** Builds the npm package of the project in this folder, if there is one; returns its program. */
async function installedProgram(): Promise<string | undefined> {
  if (!existsSync('packaging/dist.ts')) return undefined;
  const { buildInstalled } = await import('../packaging/dist.ts');
  return buildInstalled(resolve('node_modules/.cache/waymark-installed'));
}

/** Runs the tests of a group, prints their report and adds up their results. */
async function report({ name, files, node }: GroupRun): Promise<void> {
  // Otherwise, tap loads its hooks by NODE_OPTIONS into this process and all its child processes.
  const env = [
    '-u',
    'NODE_CHANNEL_FD',
    '-u',
    'NODE_CHANNEL_SERIALIZATION_MODE',
    `NODE_OPTIONS=${process.env.NODE_OPTIONS ?? ''}`,
    ...(program === undefined ? [] : [`WAYMARK_TEST_PROGRAM=${program}`]),
    `WAYMARK_TEST_TIER=${given.tier}`,
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
