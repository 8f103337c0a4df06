import type { Socket } from 'node:net';
import type { Cancellation } from '../../model/cancellation.ts';
import type { ResponseMessage } from '../http-message.ts';

/**
 * A cancellation of an answer: its connection has closed before the end, or its client has closed
 * its side. Such a client may still wait, but most have disconnected, and a slow source would work
 * in vain. It adds listeners to the connection only when it has one itself.
 */
export class ClientGone implements Cancellation {
  readonly #response: ResponseMessage;
  readonly #client: Partial<Socket>;
  readonly #listeners = new Set<() => void>();
  #isWatched = false;

  constructor(response: ResponseMessage, client: Partial<Socket>) {
    this.#response = response;
    this.#client = client;
  }

  get aborted(): boolean {
    return this.#response.destroyed && !this.#response.writableFinished;
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
    const [response, client] = [this.#response, this.#client];
    const give = (): void => {
      response.destroy();
    };
    response.once('close', () => {
      client.off?.('end', give);
      if (response.writableFinished) return;
      for (const listener of [...this.#listeners]) listener();
    });
    // A client of HTTP/2 resets the stream instead of closing a side.
    if (client.once === undefined) return;
    client.once('end', give);
    if (client.readableEnded === true) give();
  }
}

/** Returns a signal that aborts if the connection of an answer closes before the end. */
export function answerSignal(response: ResponseMessage): AbortSignal {
  const controller = new AbortController();
  response.once('close', () => {
    // After the end there are no listeners, and an abort reason with its stack costs time.
    if (!response.writableFinished) controller.abort();
  });
  return controller.signal;
}
