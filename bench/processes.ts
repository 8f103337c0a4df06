import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { delimiter, join } from 'node:path';

/** A process that the benchmark has started, with its own children. */
export interface Child {
  readonly pid: number;
  /** Resolves when it has ended: to a line with the exit code and its last output on stderr. */
  readonly ended: Promise<string>;
  /** Sends SIGTERM, and SIGKILL after 5 s; resolves when it has ended. */
  stop(): Promise<void>;
}

/** The core and the output files of a process. */
export interface StartOptions {
  /** The core that it is pinned to; if undefined, the kernel chooses. */
  readonly core: number | undefined;
  /** The files that get its output, appended. */
  readonly stdout: string;
  readonly stderr: string;
  readonly env?: NodeJS.ProcessEnv;
}

const stopGraceMs = 5_000;
const running = new Set<ChildProcess>();

/** Starts a process as the leader of its own group, so that its workers end with it. */
export function startProcess(
  program: string,
  args: readonly string[],
  options: StartOptions,
): Child {
  const { core, env = process.env } = options;
  const [command, ...rest] =
    core === undefined ? [program, ...args] : ['taskset', '-c', String(core), program, ...args];
  const files = [openSync(options.stdout, 'a'), openSync(options.stderr, 'a')] as const;
  const child = spawn(command, rest, {
    detached: true,
    env,
    stdio: ['ignore', ...files],
  });
  for (const file of files) closeSync(file);
  running.add(child);
  const ended = new Promise<string>((resolve) => {
    const done = (how: string): void => {
      running.delete(child);
      resolve(`${program} ended (${how}): ${readFileSync(options.stderr, 'utf8').slice(-2000)}`);
    };
    child.once('error', ({ message }) => {
      done(message);
    });
    child.once('exit', (code, signal) => {
      done(signal ?? `exit code ${code}`);
    });
  });
  return {
    pid: child.pid ?? 0,
    ended,
    async stop() {
      child.kill('SIGTERM');
      const insist = setTimeout(killGroup, stopGraceMs, child);
      await ended;
      clearTimeout(insist);
    },
  };
}

/** Kills all processes that still run; for the exit of this process. */
export function killAll(): void {
  for (const child of running) killGroup(child);
}

/** Finds a program in PATH and in Debian's folders of daemons; undefined if it is not installed. */
export function findProgram(name: string): string | undefined {
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin'];
  return folders.map((folder) => join(folder, name)).find((file) => existsSync(file));
}

/** Ports of 127.0.0.1 that nothing listens on, all different. */
export async function freePorts(count: number): Promise<readonly number[]> {
  const held = await Promise.all(Array.from({ length: count }, holdPort));
  await Promise.all(held.map(({ release }) => release()));
  return held.map(({ port }) => port);
}

async function holdPort(): Promise<{
  readonly port: number;
  readonly release: () => Promise<void>;
}> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port was given');
  return {
    port: address.port,
    release: () =>
      new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
      }),
  };
}

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // The process has ended in the meantime.
  }
}
