import { spawn } from 'node:child_process';
import { globSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, sep } from 'node:path';

/**
 * `npm test`: every test file, those of one folder in one process. Most of a file's time of its own
 * is loading what it tests, which its neighbours need as well. A folder's report is printed when it
 * is done; what failed is told once more at the end, and the last line is `N passed, N failed`, and
 * how many were skipped if any was. A process that says nothing for longer than a test may take is
 * ended, and counts as a failed test: something that its tests began goes on behind them.
 */

/** The folders that take longest, which begin first. */
const longest = [
  'server',
  'browser',
  'cli',
  'api',
  'webhooks',
  'proxy',
  'cache',
  'outbound',
  'acme',
  'static',
];

const testMs = 60_000;
/** Longer than those that have more time than others, which say so themselves. */
const silenceMs = 150_000;

const flags = [
  '--import=./test/compile-cache.js',
  '--test',
  '--test-isolation=none',
  `--test-timeout=${testMs}`,
  '--test-reporter=./test/reporter.ts',
];

interface Outcome {
  passed: number;
  failed: number;
  skipped: number;
  /** What is to be read of what failed, by folders. */
  readonly failures: string[];
}

/** The test files, by the folder below test/ that they are in. */
function filesByFolder(): readonly (readonly [folder: string, files: readonly string[]])[] {
  const folderOf = (file: string): string => dirname(file).split(sep)[1] ?? '.';
  const rank = (folder: string): number =>
    longest.includes(folder) ? longest.indexOf(folder) : longest.length;
  return Object.entries(Object.groupBy(globSync('test/**/*.test.ts').sort(), folderOf))
    .map(([folder, files = []]) => [folder, files] as const)
    .sort(([one], [other]) => rank(one) - rank(other));
}

/** Runs the tests of a folder and prints their report. */
async function run(folder: string, files: readonly string[], total: Outcome): Promise<void> {
  const child = spawn(process.execPath, [...flags, ...files], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise<number | string>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => {
      resolve(code ?? signal ?? '');
    });
  });
  const silence = setTimeout(() => child.kill('SIGKILL'), silenceMs);
  let report = '';
  for await (const chunk of child.stdout.setEncoding('utf8')) {
    report += chunk as string;
    silence.refresh();
  }
  clearTimeout(silence);
  const code = await ended;
  process.stdout.write(`test/${folder}: ${files.length} files\n${report}`);
  const summary = /^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?\n$/m.exec(report);
  const [, passed = 0, failed = 0, skipped = 0] = (summary ?? []).map((text: string | undefined) =>
    Number(text ?? 0),
  );
  total.passed += passed;
  total.skipped += skipped;
  // One that ended in another way, or before its end, has not told of all of its tests.
  const isBroken = summary === null || (code !== 0 && failed === 0);
  total.failed += isBroken ? 1 : failed;
  const end = isBroken ? `test/${folder} ended with ${code}.\n` : '';
  process.stdout.write(end);
  const [, why = report.slice(-2_000)] = report.split('\n✖ failing tests:\n');
  if (isBroken || failed > 0) total.failures.push(`\n✖ test/${folder}\n${why}${end}`);
}

const waiting = [...filesByFolder()];
const total: Outcome = { passed: 0, failed: 0, skipped: 0, failures: [] };
await Promise.all(
  Array.from({ length: availableParallelism() + 1 }, async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      await run(...next, total);
    }
  }),
);
const { passed, failed, skipped } = total;
process.stdout.write(total.failures.join(''));
const left = skipped > 0 ? `, ${skipped} skipped` : '';
process.stdout.write(`${passed} passed, ${failed} failed${left}\n`);
process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
