import type { Socket } from 'node:net';
import type { Cancellation } from '../../model/cancellation.ts';
import type { ResponseMessage } from '../http-message.ts';

/**
 * Says that nobody waits for an answer any more: its connection has ended before it, or its client
 * has ended its own side. That one may wait for the answer still, but has gone as a rule, and a
 * source that is slow would work for nobody. Nothing is watched before somebody wants to be told.
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
    // A session of HTTP/2 has no sides: its client resets the stream.
    if (client.once === undefined) return;
    client.once('end', give);
    if (client.readableEnded === true) give();
  }
}

/** A signal that aborts when the connection of an answer ends before it. */
export function answerSignal(response: ResponseMessage): AbortSignal {
  const controller = new AbortController();
  response.once('close', () => {
    // Nobody listens after the end, and a reason with its stack takes a while to make.
    if (!response.writableFinished) controller.abort();
  });
  return controller.signal;
}
