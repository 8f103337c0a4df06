import type { Writable } from 'node:stream';
import { corkedConnectionsMax } from './limits.ts';

/**
 * Connections that write together: what they are given in a turn of the event loop goes out at its
 * end, one right behind the other. A write wakes a reader that sleeps, which costs the writer more
 * than all else of it; one that has just been given something, and is awake, costs little.
 */
export class Corks {
  #corked: Writable[] = [];

  /**
   * Has a connection write a text of latin1, behind all that it was given before, when the turn
   * ends or as soon as so many have something to write.
   */
  write(connection: Writable, text: string): void {
    if (connection.writableCorked === 0) {
      connection.cork();
      if (this.#corked.push(connection) === 1) setImmediate(this.uncork);
    }
    connection.write(text, 'latin1');
    if (this.#corked.length >= corkedConnectionsMax) this.uncork();
  }

  /** Has all of them write at once. */
  readonly uncork = (): void => {
    const corked = this.#corked;
    this.#corked = [];
    for (const connection of corked) connection.uncork();
  };
}
