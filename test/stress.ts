// `npm run test:stress`: runs `npm test` under conditions that a machine may have, and prints a
// table. `-- NAME …` runs some of the conditions only, `--times N` the first one N times.
// `slow-browser` runs the files of `test/browser` one at a time, in a browser that is slow.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { parseArgs } from 'node:util';

/** One condition: what runs `npm test`, or why it cannot be made on this machine. */
interface Condition {
  readonly name: string;
  readonly words?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  /** Processes that keep the cores busy meanwhile. */
  readonly busy?: number;
  readonly missing?: string | undefined;
}

const { values, positionals } = parseArgs({
  options: { times: { type: 'string', default: '10' } },
  allowPositionals: true,
});

const isRoot = process.getuid?.() === 0;
const npm = ['npm', 'test'];

function has(program: string): boolean {
  return spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;
}

/** The reason to leave a condition out without a program. */
function without(program: string): string | undefined {
  return has(program) ? undefined : `needs ${program}`;
}

/** A folder for temporary files on a disk or in memory; undefined if this machine has no such. */
function temporaryFolder(parent: string): string | undefined {
  if (!existsSync(parent)) return undefined;
  const folder = mkdtempSync(join(parent, 'waymark-stress-'));
  chmodSync(folder, 0o777);
  process.once('exit', () => {
    rmSync(folder, { recursive: true, force: true });
  });
  return folder;
}

/** A copy of the project that another user may read and write. */
function copyForOther(): string {
  const copy = join(mkdtempSync(join(tmpdir(), 'waymark-other-')), 'a clone with ü');
  cpSync('.', copy, { recursive: true, verbatimSymlinks: true });
  spawnSync('chown', ['-R', 'nobody', join(copy, '..')]);
  process.once('exit', () => {
    rmSync(join(copy, '..'), { recursive: true, force: true });
  });
  return copy;
}

function asOther(): Condition {
  const name = 'another user, in a path with a space and an umlaut';
  const missing = isRoot ? without('runuser') : 'needs root';
  if (missing !== undefined) return { name, missing };
  const copy = copyForOther();
  const home = temporaryFolder('/var/tmp') ?? tmpdir();
  return {
    name,
    words: ['runuser', '-u', 'nobody', '--', 'sh', '-c', `cd '${copy}' && npm test`],
    env: { HOME: home },
  };
}

function inFolder(name: string, parent: string): Condition {
  const folder = temporaryFolder(parent);
  return folder === undefined
    ? { name, missing: `needs ${parent}` }
    : { name, words: npm, env: { TMPDIR: folder } };
}

/** All tests of pages, one at a time, in a browser in which pages and tests race (slow-browser.ts). */
function slowBrowser(): Condition {
  // A test of all screens takes minutes there. What a test waits for has its own timeout.
  const flags = ['--test-concurrency=1', '--test-timeout=600000'];
  return {
    name: 'in a slow browser',
    words: ['npm', 'run', 'test:only', '--', ...flags, 'test/browser/*.test.ts'],
    env: { WAYMARK_TEST_SLOW_BROWSER: process.env.WAYMARK_TEST_SLOW_BROWSER ?? '6' },
  };
}

const conditions: readonly (readonly [name: string, make: () => Condition])[] = [
  ['as-it-is', () => ({ name: 'as it is', words: npm })],
  [
    'one-core',
    () => ({
      name: 'on one core',
      words: ['taskset', '-c', '0', ...npm],
      missing: without('taskset'),
    }),
  ],
  ['busy', () => ({ name: 'with busy cores', words: npm, busy: availableParallelism() })],
  ['root', () => ({ name: 'as root', words: npm, missing: isRoot ? undefined : 'needs root' })],
  ['other-user', asOther],
  ['time-zone', () => ({ name: 'TZ=Pacific/Apia', words: npm, env: { TZ: 'Pacific/Apia' } })],
  ['locale', () => ({ name: 'LANG=C', words: npm, env: { LANG: 'C', LC_ALL: 'C' } })],
  [
    'no-ipv6',
    () => ({
      name: 'without IPv6',
      words: [
        ...['unshare', '--net', 'sh', '-c'],
        'sysctl -qw net.ipv6.conf.all.disable_ipv6=1 && ip link set lo up && npm test',
      ],
      missing: isRoot ? (without('unshare') ?? without('ip')) : 'needs root',
    }),
  ],
  ['slow-browser', slowBrowser],
  ['memory', () => inFolder('temporary files in memory', '/dev/shm')],
  ['disk', () => inFolder('temporary files on a disk', '/var/tmp')],
  [
    'later',
    () => ({
      name: 'with a clock that is two years ahead',
      words: ['faketime', '-f', '+2y', ...npm],
      missing: without('faketime'),
    }),
  ],
];

async function run({ words = [], env = {}, busy = 0 }: Condition): Promise<readonly string[]> {
  const loops = Array.from({ length: busy }, () =>
    spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }),
  );
  const [program = '', ...rest] = words;
  const started = performance.now();
  const child = spawn(program, rest, {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [out] = await Promise.all([text(child.stdout), once(child, 'close')]);
  for (const loop of loops) loop.kill('SIGKILL');
  const seconds = Math.round((performance.now() - started) / 1000);
  const last = out.trimEnd().split('\n').at(-1) ?? '';
  // All failures with their reasons, as they stand at the end of the report.
  const failures = out.slice(out.lastIndexOf('\nFailed:\n')).trimEnd().split('\n').slice(2, -1);
  return [`${last} in ${seconds} s`, ...(last.includes(' 0 failed') ? [] : failures)];
}

for (const [key, make] of conditions) {
  if (positionals.length > 0 && !positionals.includes(key)) continue;
  const condition = make();
  const times = key === 'as-it-is' ? Number(values.times) : 1;
  for (let turn = 1; turn <= times; turn += 1) {
    const name = times === 1 ? condition.name : `${condition.name}, ${turn} of ${times}`;
    const { missing } = condition;
    const lines = missing === undefined ? await run(condition) : [`left out: ${missing}`];
    process.stdout.write(`${name.padEnd(52)} ${lines.join('\n    ')}\n`);
    if (missing === undefined && !lines[0]?.includes(' 0 failed')) process.exitCode = 1;
  }
}
