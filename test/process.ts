import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { temporaryFolder, writeFiles, type Cleaning } from './folder.ts';
import { project } from './tidy/sources.ts';

/** `bin/waymark.js`: of the npm package that test/run.ts has built, or else of the sources. */
export const program = process.env.WAYMARK_TEST_PROGRAM ?? join(project, 'bin/waymark.js');

/** The result of a command that has ended. */
export interface Finished {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly out: string;
  readonly err: string;
}

/** Runs `waymark` with arguments and standard input in a new process, to its end. */
export async function runWaymark(
  words: readonly string[],
  {
    cwd = project,
    env = {},
    input = '',
  }: {
    readonly cwd?: string;
    readonly env?: NodeJS.ProcessEnv;
    readonly input?: string;
  } = {},
): Promise<Finished> {
  const child = spawnWaymark(words, { cwd, env });
  child.stdin?.end(input);
  const [out, err] = [collect(child, 'stdout'), collect(child, 'stderr')];
  const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
  return { code, signal, out: out(), err: err() };
}

/** A process of `waymark serve`. */
export interface Served {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly url: string;
  readonly port: number;
  /** The admin key of the first start, from its file; empty at a later one. */
  readonly adminKey: string;
  readonly out: () => string;
  readonly err: () => string;
  /** Resolves when the process has ended. */
  readonly closed: Promise<{ readonly code: number | null; readonly signal: string | null }>;
  /** The maximum of its resident memory since the start, or since `forgetPeak`, in bytes. */
  peakBytes(): number;
  /** Resets that maximum to the current value, and returns it. */
  forgetPeak(): number;
}

/** A folder with an ini file for a server; `text` follows the first keys of `[server]`. */
export async function serverFolder(
  t: Cleaning,
  text: string,
  files: Readonly<Record<string, string | Buffer>> = {},
): Promise<{ readonly folder: string; readonly iniFile: string; readonly ini: string }> {
  const folder = await temporaryFolder(t);
  const ini = `[server]\nlisten = 127.0.0.1:0\ndata = data\n${text}`;
  await writeFiles(folder, { 'server.ini': ini, ...files });
  return { folder, iniFile: join(folder, 'server.ini'), ini };
}

/**
 * Starts `waymark serve`; resolves once it has printed its address, and at a first start its key.
 */
export async function startServed(
  t: Cleaning,
  iniFile: string,
  {
    first = true,
    words = ['--config', iniFile],
    cwd = project,
    env = {},
    openFiles,
  }: {
    readonly first?: boolean;
    /** The arguments after `serve`. */
    readonly words?: readonly string[];
    readonly cwd?: string;
    readonly env?: NodeJS.ProcessEnv;
    readonly openFiles?: OpenFiles;
  } = {},
): Promise<Served> {
  const child = spawnWaymark(['serve', ...words], { cwd, env, openFiles });
  t.after(() => {
    child.kill('SIGKILL');
  });
  const [out, err] = [collect(child, 'stdout'), collect(child, 'stderr')];
  const closed = once(child, 'close').then(([code, signal]) => ({
    code: code as number | null,
    signal: signal as string | null,
  }));
  const address = () => /serves (http:\/\/[^\s"]+)/.exec(out())?.[1];
  await new Promise<void>((resolve, reject) => {
    child.stdout?.on('data', () => {
      if (address() !== undefined) resolve();
    });
    void closed.then(({ code, signal }) => {
      reject(new Error(`serve ended with ${code ?? signal}: ${out()}${err()}`));
    });
  });
  const url = address() ?? '';
  const greeting = /admin key is in this file, .*\n\n {4}(.*)\n[^]*\n\n$/;
  while (first && !greeting.test(err())) await once(child.stderr ?? child, 'data');
  const keyFile = greeting.exec(err())?.[1];
  const adminKey = keyFile === undefined ? '' : readFileSync(keyFile, 'utf8').trim();
  const { pid = 0 } = child;
  return {
    child,
    pid,
    url,
    port: Number(new URL(url).port),
    adminKey,
    out,
    err,
    closed,
    peakBytes: () => peakOf(pid),
    forgetPeak: () => {
      writeFileSync(`/proc/${pid}/clear_refs`, '5');
      return peakOf(pid);
    },
  };
}

function peakOf(pid: number | undefined): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) * 1024;
}

/** The limit of open files of a process, and how many descriptors it has open from the start. */
export interface OpenFiles {
  readonly max: number;
  readonly taken: number;
}

/** Starts `waymark` with arguments; its standard streams are pipes. */
export function spawnWaymark(
  words: readonly string[],
  {
    cwd = project,
    env = {},
    openFiles,
  }: {
    readonly cwd?: string;
    readonly env?: NodeJS.ProcessEnv;
    readonly openFiles?: OpenFiles | undefined;
  } = {},
): ChildProcess {
  const waymark = [program, ...words];
  const given = { cwd, env: { ...process.env, NO_COLOR: '1', ...env } };
  if (openFiles === undefined) {
    return spawn(process.execPath, waymark, { ...given, stdio: ['pipe', 'pipe', 'pipe'] });
  }
  // With this flag bin/waymark.js does not execute itself again, which would close the descriptors.
  const line = [process.execPath, '--expose-gc', ...waymark];
  const descriptor = openSync('/dev/null', 'r');
  const child = spawn('/bin/sh', ['-c', `ulimit -n ${openFiles.max}; exec "$@"`, 'sh', ...line], {
    ...given,
    stdio: ['pipe', 'pipe', 'pipe', ...Array<number>(openFiles.taken).fill(descriptor)],
  });
  closeSync(descriptor);
  return child;
}

function collect(child: ChildProcess, name: 'stdout' | 'stderr'): () => string {
  let text = '';
  child[name]?.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  return () => text;
}

/** The child processes of a process. */
export function workersOf({ pid }: Pick<Served, 'pid'>): readonly number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
  return text.split(' ').filter(Boolean).map(Number);
}

/** Kills processes; resolves when they are dead, possibly before their parent notices. */
export async function killAll(pids: readonly number[]): Promise<void> {
  for (const pid of pids) process.kill(pid, 'SIGKILL');
  for (const pid of pids) while (!isDead(pid)) await nextTurn();
}

/** Whether all threads have ended: the files of a process are open until its last thread ends. */
export function isDead(pid: number): boolean {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    return /^State:\s+[ZX]/m.test(status) && readdirSync(`/proc/${pid}/task`).length === 1;
  } catch {
    return true;
  }
}
