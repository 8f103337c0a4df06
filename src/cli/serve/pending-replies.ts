/** Requests to other processes that wait for a reply at once, per process and purpose. */
export const pendingRepliesMax = 4_096;

/** Requests that wait for a reply with their number, for a limited time and in limited number. */
export class PendingReplies<Answer> {
  readonly #resolves = new Map<number, (answer: Answer | undefined) => void>();
  #latest = 0;

  /**
   * Sends a request; resolves to its reply, or to undefined if none arrives in time. A request
   * beyond `pendingRepliesMax` is not sent: the other process has stopped to reply, and what is
   * sent to it would fill the memory.
   */
  request(send: (request: number) => void, waitMs: number): Promise<Answer | undefined> {
    if (this.#resolves.size >= pendingRepliesMax) return Promise.resolve(undefined);
    this.#latest += 1;
    const request = this.#latest;
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.resolve(request, undefined);
      }, waitMs);
      this.#resolves.set(request, (answer) => {
        clearTimeout(timer);
        resolve(answer);
      });
      send(request);
    });
  }

  /** Passes a reply on to the request with its number. */
  resolve(request: number, answer: Answer | undefined): void {
    this.#resolves.get(request)?.(answer);
    this.#resolves.delete(request);
  }
}
