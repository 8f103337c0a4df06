import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ListenAddress } from '../../core/config/addresses.ts';
import type { Config } from '../../core/config/config.ts';
import type { Log } from '../../core/report/log.ts';
import { Failure } from '../../core/values/failure.ts';
import { takeOverMsMax } from '../limits.ts';
import type { Predecessor } from './assembly/prepare-data.ts';
import {
  type ListeningSocket,
  closeSockets,
  listeningSockets,
  matchSockets,
  socketText,
} from './inherited-sockets.ts';
import { passedDescriptors } from './service-manager.ts';
import { ownCommand } from './workers.ts';

/** The environment variable that tells a process about its predecessor. */
const handOverVariable = 'WAYMARK_HAND_OVER';

/** The first descriptor that a new process inherits: 3 is its channel to the old one. */
const firstDescriptor = 4;

/** Programs that run one other program in a container, and end with it. */
const containerInits = ['docker-init', 'tini', 'dumb-init', 'catatonit'];

/** The sockets and data that this process inherits at its start. */
export interface Inheritance {
  /** The process that this one replaces; undefined at an ordinary start. */
  readonly predecessor: Predecessor | undefined;
  /** Listening sockets of that process, or of systemd. */
  readonly sockets: readonly ListeningSocket[];
  /** The names that systemd gives to its sockets, by descriptor. */
  readonly names: ReadonlyMap<number, string>;
}

/** Reads what this process inherits from its environment, and removes it there. */
export function receiveInheritance(env: Record<string, string | undefined>): Inheritance {
  const text = env[handOverVariable];
  const passed = passedDescriptors(env, process.pid);
  for (const name of [handOverVariable, 'LISTEN_PID', 'LISTEN_FDS', 'LISTEN_FDNAMES']) {
    Reflect.deleteProperty(env, name);
  }
  if (text === undefined) {
    const sockets = listeningSockets(passed.map(({ fd }) => fd));
    return {
      predecessor: undefined,
      sockets,
      names: new Map(passed.map(({ fd, name }) => [fd, name])),
    };
  }
  const { pid, data, fds } = JSON.parse(text) as HandOverText;
  return { predecessor: { pid, data }, sockets: listeningSockets(fds), names: new Map() };
}

/** Closes inherited sockets that `listen` does not name, and logs those that systemd keeps open. */
export async function closeUnused(
  { sockets, names }: Inheritance,
  listens: readonly ListenAddress[],
  log: Log,
): Promise<readonly ListeningSocket[]> {
  const used = new Set(await matchSockets(listens, sockets));
  const unused = sockets.filter((socket) => !used.has(socket));
  for (const socket of unused) {
    const name = names.get(socket.fd);
    if (name === undefined) continue;
    log.warn(
      {},
      `systemd has opened ${socketText(socket)} (${name}), which no \`listen\` of [server] ` +
        'names: no process answers there.',
    );
  }
  closeSockets(unused);
  return sockets.filter((socket) => used.has(socket));
}

/** Tells the predecessor that this process serves; after that, the two are independent. */
export function announceToPredecessor(): Promise<void> {
  return sendToPredecessor({ kind: 'serving' });
}

/** Tells the predecessor why this process cannot serve: a Failure or its message. */
export async function reportToPredecessor(reason: unknown): Promise<void> {
  const text = reason instanceof Failure ? reason.message : reason;
  if (typeof text !== 'string') return;
  await sendToPredecessor({ kind: 'failed', message: text.replace(/\.$/, '') });
}

/** Sends the last message to the predecessor, which may have ended. */
async function sendToPredecessor(message: SuccessorMessage): Promise<void> {
  await new Promise<void>((resolve) => {
    const sent = (): void => {
      resolve();
    };
    if (!process.connected || process.send === undefined) sent();
    else process.send(message, undefined, undefined, sent);
  });
  if (process.connected) process.disconnect?.();
}

/** The value of that variable, as JSON. */
interface HandOverText extends Predecessor {
  readonly fds: readonly number[];
}

/** A message of the new process to the old one. */
type SuccessorMessage =
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
