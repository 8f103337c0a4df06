import type { NatsConnection } from '@nats-io/transport-node';
import type { ReconnectingNats } from './nats-connection.ts';

/** The log that wake-ups are about. */
interface WakeUpParts {
  readonly nats: ReconnectingNats;
  readonly name: string;
  readonly id: string;
}

/** The subject of the messages that tell all nodes of a new entry, outside of the stream. */
function wakeUpSubject({ name, id }: Pick<WakeUpParts, 'name' | 'id'>): string {
  return `${name}.new.${id}`;
}

/** Tells all nodes the position of a new entry, so that they need not poll often. */
export function publishWakeUp(
  connection: NatsConnection,
  log: Pick<WakeUpParts, 'name' | 'id'>,
  position: number,
): void {
  if (!connection.isClosed()) connection.publish(wakeUpSubject(log), String(position));
}

function positionOf(text: string): number {
  return /^\d{1,15}$/.test(text) ? Number(text) : 0;
}

/** Messages of other nodes about new entries, over one connection. */
export class WakeUps {
  /** The newest position that a node has announced. */
  newest = 0;
  readonly #failed = new AbortController();
  readonly #forget: () => void;
  #wake: (() => void) | undefined;

  constructor(connection: NatsConnection, parts: WakeUpParts, signal: AbortSignal) {
    const fail = (reason: unknown): void => {
      this.#failed.abort(reason);
      this.#wake?.();
    };
    const subscription = connection.subscribe(wakeUpSubject(parts), {
      callback: (error, message) => {
        if (error !== null) fail(error);
        else this.newest = Math.max(this.newest, positionOf(message.string()));
        this.#wake?.();
      },
    });
    const aborted = (): void => {
      fail(new Error('aborted'));
    };
    const remove = parts.nats.onLost(fail);
    signal.addEventListener('abort', aborted);
    if (signal.aborted) aborted();
    this.#forget = () => {
      remove();
      signal.removeEventListener('abort', aborted);
      if (!connection.isClosed()) subscription.unsubscribe();
    };
  }

  /** Aborts when the connection is lost, or the reader ends. */
  get failed(): AbortSignal {
    return this.#failed.signal;
  }

  /** Resolves at the next message, at a failure, or after a while. */
  async wait(timeoutMs: number): Promise<void> {
    if (this.failed.aborted) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, timeoutMs);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#wake = undefined;
  }

  close(): void {
    this.#forget();
  }
}
