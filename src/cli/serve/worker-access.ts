import type { Worker } from 'node:cluster';
import type { AccessRows } from '../../modules/status/live-access.ts';
import type { AccessMessage } from './worker-messages.ts';

/** Messages with lines that a process may not have read yet; the leader drops further ones. */
export const liveMessagesUnreadMax = 4;

/** A worker that messages can be sent to. */
export type MessagePort = Pick<Worker, 'isConnected'> & {
  send(message: AccessMessage, sent: () => void): unknown;
};

/** The part of the leading process: passes lines to the workers whose clients read them. */
export class LeaderAccess {
  readonly #watching = new Set<MessagePort>();
  /** Messages with lines that a worker has not taken yet, and lines that it misses. */
  readonly #unread = new WeakMap<MessagePort, { messages: number; dropped: number }>();

  /** Handles a message of a worker about the live access log; `workers` are all that run. */
  handle(message: AccessMessage, from: MessagePort, workers: Iterable<MessagePort>): void {
    if (message.kind === 'watch-access') {
      if (message.isWatching) this.#watching.add(from);
      else this.#watching.delete(from);
      for (const worker of workers) this.tell(worker);
      return;
    }
    for (const worker of this.#watching) if (worker !== from) this.#pass(message.lines, worker);
  }

  /** Tells a worker whether others read the access log. */
  tell(worker: MessagePort): void {
    const isWatching = [...this.#watching].some((one) => one !== worker);
    if (worker.isConnected()) worker.send({ kind: 'watch-access', isWatching }, () => undefined);
  }

  /** Forgets a worker that has ended. */
  remove(worker: MessagePort, workers: Iterable<MessagePort>): void {
    if (!this.#watching.delete(worker)) return;
    for (const other of workers) this.tell(other);
  }

  /** Sends lines to a worker; drops them while it has not taken earlier ones. */
  #pass({ rows, dropped }: AccessRows, worker: MessagePort): void {
    if (!worker.isConnected()) return;
    const unread = this.#unread.get(worker) ?? { messages: 0, dropped: 0 };
    this.#unread.set(worker, unread);
    if (unread.messages >= liveMessagesUnreadMax) {
      unread.dropped += rows.length + dropped;
      return;
    }
    const lines = { rows, dropped: dropped + unread.dropped };
    unread.dropped = 0;
    unread.messages += 1;
    worker.send({ kind: 'access-lines', lines }, () => {
      unread.messages -= 1;
    });
  }
}
