import { Failure } from '../../core/values/failure.ts';
import type { Predecessor } from './assembly/prepare-data.ts';
import {
  closeSockets,
  listeningSockets,
  matchSockets,
  socketText,
  type ListeningSocket,
} from './inherited-sockets.ts';
import type { ListenAddress } from '../../core/config/addresses.ts';
import type { Log } from '../../core/report/log.ts';
import { handOverVariable, type HandOverText, type SuccessorMessage } from './hand-over.ts';
import { passedDescriptors } from './service-manager.ts';

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
