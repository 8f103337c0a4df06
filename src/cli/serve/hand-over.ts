import { spawn, type ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../../core/config/config.ts';
import type { Predecessor } from './assembly/prepare-data.ts';
import type { Log } from '../../core/report/log.ts';
import { listeningSockets, matchSockets, type ListeningSocket } from './inherited-sockets.ts';
import { takeOverMsMax } from '../limits.ts';
import { ownCommand } from '../own-command.ts';

/** The environment variable that tells a process about its predecessor. */
export const handOverVariable = 'WAYMARK_HAND_OVER';

/** The value of that variable, as JSON. */
export interface HandOverText extends Predecessor {
  readonly fds: readonly number[];
}

/** A message of the new process to the old one. */
export type SuccessorMessage =
  | { readonly kind: 'serving' }
  | { readonly kind: 'failed'; readonly message: string };

/** How a restart ended. */
export type RestartOutcome =
  | { readonly state: 'done'; readonly pid: number }
  | { readonly state: 'failed'; readonly message: string };

/** The file in the data folder that says how the last restart ended. */
export function outcomeFile(data: string): string {
  return join(data, 'restart.json');
}

/** The first descriptor that a new process inherits: 3 is its channel to the old one. */
const firstDescriptor = 4;

/**
 * Starts the program again, which takes over the listening sockets and the data folder while this
 * process serves; if the signal aborts, it stops the new process. The outcome also goes to the log,
 * and to a file of the data folder. Never rejects.
 */
export async function handOver(
  config: Config,
  { log, signal }: { readonly log: Log; readonly signal: AbortSignal },
): Promise<RestartOutcome> {
  log.info({}, 'Restarting: this process serves until the new one does.');
  const outcome = await startSuccessor(config, signal).catch((error: unknown): RestartOutcome => {
    return { state: 'failed', message: `it cannot be started (${String(error)})` };
  });
  if (outcome.state === 'done') {
    log.info({}, `Process ${outcome.pid} serves. This one ends when its connections are closed.`);
  } else {
    log.error({}, `Cannot restart: ${outcome.message}. This process continues to serve.`);
  }
  await writeOutcome(config.server.data, outcome).catch((error: unknown) => {
    log.warn({ err: error }, 'Cannot write the outcome of the restart for the command `restart`.');
  });
  return outcome;
}

async function startSuccessor({ server }: Config, signal: AbortSignal): Promise<RestartOutcome> {
  if (endsContainer()) {
    const message = 'its container ends with this process: start another container';
    return { state: 'failed', message };
  }
  const matched = await matchSockets(server.listen, listeningSockets());
  const sockets = matched.filter((socket): socket is ListeningSocket => socket !== undefined);
  if (sockets.length === 0) {
    const message = 'the system does not say which sockets are open; only Linux does, in /proc';
    return { state: 'failed', message };
  }
  return outcomeOf(start(server.data, sockets), signal);
}

/** Programs that run one other program in a container, and end with it. */
const containerInits = ['docker-init', 'tini', 'dumb-init', 'catatonit'];

function endsContainer(): boolean {
  if (process.pid === 1) return true;
  if (process.ppid !== 1) return false;
  try {
    return containerInits.includes(readFileSync('/proc/1/comm', 'utf8').trim());
  } catch {
    return false;
  }
}

function start(data: string, sockets: readonly ListeningSocket[]): ChildProcess {
  const { file, nodeFlags, script, words } = ownCommand(process.argv.slice(2));
  const text: HandOverText = {
    pid: process.pid,
    data,
    fds: sockets.map((_, at) => firstDescriptor + at),
  };
  return spawn(file, [...nodeFlags, ...(script === undefined ? [] : [script]), ...words], {
    env: { ...process.env, [handOverVariable]: JSON.stringify(text) },
    stdio: ['inherit', 'inherit', 'inherit', 'ipc', ...sockets.map(({ fd }) => fd)],
  });
}

/** Waits until a new process serves, has failed, or has taken too long; it is killed then. */
function outcomeOf(child: ChildProcess, stopped: AbortSignal): Promise<RestartOutcome> {
  return new Promise((resolve) => {
    let reason: string | undefined;
    const stop = (): void => {
      reason = 'this process stops';
      child.kill('SIGTERM');
    };
    stopped.addEventListener('abort', stop);
    const settle = (outcome: RestartOutcome): void => {
      clearTimeout(timer);
      stopped.removeEventListener('abort', stop);
      resolve(outcome);
    };
    const timer = setTimeout(() => {
      reason = `the new process did not serve within ${takeOverMsMax / 1000} s`;
      child.kill('SIGKILL');
    }, takeOverMsMax);
    child.on('message', (message: SuccessorMessage) => {
      if (message.kind === 'failed') {
        reason = message.message;
        return;
      }
      child.disconnect();
      child.unref();
      settle({ state: 'done', pid: child.pid ?? 0 });
    });
    child.once('error', (error) => {
      settle({ state: 'failed', message: `the new process cannot be started (${error.message})` });
    });
    // After `exit`, its last message may still arrive; after `close`, none.
    child.once('close', (code, signal) => {
      const ended =
        `the new process ended with ${signal ?? `exit code ${code ?? ''}`} before it served; ` +
        'its standard error says why';
      settle({ state: 'failed', message: reason ?? ended });
    });
  });
}

/** Replaces the file at once, so that no reader gets half of it. */
async function writeOutcome(data: string, outcome: RestartOutcome): Promise<void> {
  const draft = `${outcomeFile(data)}.${process.pid}`;
  await writeFile(draft, `${JSON.stringify(outcome)}\n`, { mode: 0o600 });
  await rename(draft, outcomeFile(data));
}
