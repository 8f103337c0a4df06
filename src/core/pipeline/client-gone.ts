import type { Socket } from 'node:net';
import type { Cancellation } from '../values/failure.ts';
import type { Exchange } from './exchange.ts';

/**
 * A cancellation of an answer: its connection has closed before the end, or its client has closed
 * its side. Such a client may still wait, but most have disconnected, and a slow source would work
 * in vain. It adds listeners to the connection only when it has one itself.
 */
export class ClientGone implements Cancellation {
  readonly #exchange: Exchange;
  /** Undefined for a stream of HTTP/2: its client resets it instead of closing a side. */
  readonly #client: Socket | undefined;
  readonly #listeners = new Set<() => void>();
  #isWatched = false;

  constructor(exchange: Exchange, client: Socket | undefined) {
    this.#exchange = exchange;
    this.#client = client;
  }

  get aborted(): boolean {
    return this.#exchange.isOver && !this.#exchange.isSent;
  }

  addEventListener(_: 'abort', listener: () => void): void {
    this.#listeners.add(listener);
    if (!this.#isWatched) this.#watch();
  }

  removeEventListener(_: 'abort', listener: () => void): void {
    this.#listeners.delete(listener);
  }

  #watch(): void {
    this.#isWatched = true;
    const [exchange, client] = [this.#exchange, this.#client];
    const give = (): void => {
      exchange.destroy();
    };
    exchange.onClose(() => {
      client?.off('end', give);
      if (exchange.isSent) return;
      for (const listener of [...this.#listeners]) listener();
    });
    client?.once('end', give);
    if (client?.readableEnded === true) give();
  }
}
