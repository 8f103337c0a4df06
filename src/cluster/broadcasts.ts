import { setTimeout as delay } from 'node:timers/promises';
import { readAgainMs, requestMsMax } from './limits.ts';
import type { ReconnectingNats } from './nats-connection.ts';

/** Messages that nodes send each other outside of the stream; nothing stores them. */
export class Broadcasts {
  readonly #nats: ReconnectingNats;
  readonly #subject: string;
  readonly #listeners = new Set<(data: Uint8Array) => void>();
  readonly #stopped = new AbortController();
  #running: Promise<void> | undefined;

  /** `name` is that of the stream, `id` that of its log. */
  constructor(
    nats: ReconnectingNats,
    { name, id }: { readonly name: string; readonly id: string },
  ) {
    [this.#nats, this.#subject] = [nats, `${name}.node.${id}`];
  }

  /** SharedLog.broadcast: see there. */
  async send(data: Uint8Array): Promise<void> {
    const connection = await this.#nats.connection(0).catch(() => undefined);
    if (connection?.isClosed() === false) connection.publish(this.#subject, data);
  }

  /** SharedLog.onBroadcast: see there. */
  listen(listener: (data: Uint8Array) => void): () => void {
    this.#listeners.add(listener);
    this.#running ??= this.#run();
    return () => this.#listeners.delete(listener);
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#running;
  }

  /** Subscribes over each connection, one after the other. */
  async #run(): Promise<void> {
    const { signal } = this.#stopped;
    while (!signal.aborted) {
      await this.#receive(signal).catch(() => undefined);
      await delay(readAgainMs, undefined, { signal }).catch(() => undefined);
    }
  }

  /** Resolves when the connection is lost, or the signal aborts. */
  async #receive(signal: AbortSignal): Promise<void> {
    const connection = await this.#nats.connection(requestMsMax);
    await new Promise<void>((resolve) => {
      const ended = (): void => {
        forget();
        signal.removeEventListener('abort', ended);
        if (!connection.isClosed()) subscription.unsubscribe();
        resolve();
      };
      const forget = this.#nats.onLost(ended);
      const subscription = connection.subscribe(this.#subject, {
        callback: (error, { data }) => {
          if (error !== null) ended();
          else for (const listener of this.#listeners) listener(data);
        },
      });
      signal.addEventListener('abort', ended);
      if (signal.aborted) ended();
    });
  }
}
