import cluster from 'node:cluster';
import { on } from 'node:events';
import type { Config, ConfigResult } from '../config/config.ts';
import { unpack, type LeaderMessage, type WorkerMessage } from './worker-messages.ts';
import { stoppingFailure } from '../model/failure.ts';

/**
 * A worker's side of what it is led by: that process alone reads the ini file, lest workers that
 * read it at different moments come to serve different things.
 */
export class Leader {
  /** All that comes waits here until it is looked at. */
  readonly #messages = on(process, 'message', { close: ['disconnect'] }) as AsyncIterator<
    [LeaderMessage],
    undefined
  >;

  constructor() {
    // What is said to one that has just died is lost; that it died is told by `disconnect`.
    cluster.worker?.on('error', () => undefined);
  }

  /**
   * Asks for the configuration in force, whatever the ini file has become. Rejects with
   * `unavailable` where nobody is left who knows it.
   */
  async config(): Promise<Config> {
    tellLeader({ kind: 'ask-config' });
    for await (const message of this.#told()) {
      if (message.kind === 'config') return unpack(message.packed);
    }
    throw stoppingFailure();
  }

  /** Each outcome of reading the ini file, from what the configuration was told with to `end`. */
  async *results(): AsyncGenerator<ConfigResult, void, undefined> {
    for await (const message of this.#told()) {
      if (message.kind === 'reload') yield unpack(message.packed);
    }
  }

  /** Listens no more. */
  async end(): Promise<void> {
    await this.#messages.return?.();
  }

  /** What comes from now on; leaving a loop over it leaves the rest to the next one. */
  async *#told(): AsyncGenerator<LeaderMessage, void, undefined> {
    for (;;) {
      // Node tells of a word that is lost as an error of the process: with that it has ended too.
      const next = await this.#messages.next().catch(() => undefined);
      if (next === undefined || next.done === true) return;
      yield next.value[0];
    }
  }
}

/** Tells the process that leads this one, while it is there. */
export function tellLeader(message: WorkerMessage): void {
  if (process.connected) process.send?.(message);
}
