import type { Store } from '../../core/log/store.ts';
import type { Log } from '../../core/report/log.ts';

/** How often a process writes the last use of keys at most. */
export const keyUsesWriteMs = 60_000;

/** The parts of the recorder; `now` is in milliseconds since 1970. */
interface KeyUseParts {
  readonly store: Pick<Store, 'keyUses'>;
  readonly now: () => number;
  readonly log: Log;
}

/**
 * Records when each key was used last (docs/design/failures.md#last-use-of-keys): in memory at each
 * use, and in the data folder at most once a minute and at the end.
 */
export class KeyUseRecorder {
  readonly #parts: KeyUseParts;
  /** The uses that are not written yet. */
  readonly #unwritten = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;
  #isFailing = false;
  #isClosed = false;

  constructor(parts: KeyUseParts) {
    this.#parts = parts;
  }

  /** Notes that a key is used now. */
  note(id: string): void {
    if (this.#isClosed) return;
    this.#unwritten.set(id, this.#parts.now());
    this.#timer ??= setTimeout(() => void this.#write(), keyUsesWriteMs).unref();
  }

  /** As KeyUses.all, with the uses in memory. */
  last(): ReadonlyMap<string, string> {
    const last = new Map(this.#parts.store.keyUses.all());
    for (const [id, ms] of this.#unwritten) {
      const time = new Date(ms).toISOString();
      if (!((last.get(id) ?? '') >= time)) last.set(id, time);
    }
    return last;
  }

  /** Writes the uses in memory, and stops. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#write();
  }

  /** Never rejects: uses that cannot be written stay in memory until the next attempt. */
  async #write(): Promise<void> {
    this.#timer = undefined;
    const uses = new Map(this.#unwritten);
    if (uses.size === 0) return;
    const { store, log } = this.#parts;
    try {
      await store.keyUses.put(uses);
      for (const [id, ms] of uses) {
        if (this.#unwritten.get(id) === ms) this.#unwritten.delete(id);
      }
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing) log.warn({ err: error }, 'Cannot write the last use of keys.');
      this.#isFailing = true;
    }
  }
}
