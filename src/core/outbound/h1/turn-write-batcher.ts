import type { Writable } from 'node:stream';

/** Connections that are written to together: more would make the first of them wait. */
export const corkedConnectionsMax = 16;

/**
 * Collects the writes to many connections until the end of a turn of the event loop, and then
 * writes to one right after the other. To write to an idle peer wakes it, which costs more than the
 * write; a batch pays for that once.
 */
export class TurnWriteBatcher {
  #corked: Writable[] = [];

  /**
   * Writes latin1 text, after everything that was written to the connection before: when the turn
   * ends, or when the limit of corked connections is reached.
   */
  write(connection: Writable, text: string): void {
    if (connection.writableCorked === 0) {
      connection.cork();
      if (this.#corked.push(connection) === 1) setImmediate(this.uncork);
    }
    connection.write(text, 'latin1');
    if (this.#corked.length >= corkedConnectionsMax) this.uncork();
  }

  /** Uncorks all connections at once. */
  readonly uncork = (): void => {
    const corked = this.#corked;
    this.#corked = [];
    for (const connection of corked) connection.uncork();
  };
}
