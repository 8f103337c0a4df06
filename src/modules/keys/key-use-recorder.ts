import type { Store } from '../../core/log/store.ts';
import type { Log } from '../../core/report/log.ts';

/** How often a process writes the last use of keys at most. */
export const keyUsesWriteMs = 60_000;

/** How long a counted use is only in memory: as long as a visit of a breadcrumb. */
export const countedUsesWriteMs = 5_000;

/** The parts of the recorder; `now` is in milliseconds since 1970. */
interface KeyUseParts {
  readonly store: Pick<Store, 'keyUses'>;
  readonly now: () => number;
  readonly log: Log;
}

/**
 * Records when each key was used last (docs/design/failures.md#last-use-of-keys): in memory at each
 * use, and in the data folder at most once a minute and at the end. Counts the uses of tokens, too.
 */
export class KeyUseRecorder {
  readonly #parts: KeyUseParts;
  /** The uses that are not written yet. */
  readonly #unwritten = new Map<string, number>();
  /** The number of counted uses that are not written yet. */
  #counts = new Map<string, number>();
  /** Those of them that are being written. */
  #written: ReadonlyMap<string, number> = new Map();
  #timer: NodeJS.Timeout | undefined;
  #isSoon = false;
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

  /** Notes and counts a use of the token of a breadcrumb. */
  count(id: string): void {
    if (this.#isClosed) return;
    this.note(id);
    this.#counts.set(id, (this.#counts.get(id) ?? 0) + 1);
    if (this.#isSoon) return;
    this.#isSoon = true;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#write(), countedUsesWriteMs).unref();
  }

  /** As KeyUses.count, with the uses in memory. */
  counted(id: string): number {
    const { keyUses } = this.#parts.store;
    return keyUses.count(id) + (this.#counts.get(id) ?? 0) + (this.#written.get(id) ?? 0);
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
    this.#isSoon = false;
    const uses = new Map(this.#unwritten);
    if (uses.size === 0) return;
    const { store, log } = this.#parts;
    const counts = this.#counts;
    this.#written = counts;
    this.#counts = new Map();
    try {
      await store.keyUses.put(uses, counts);
      for (const [id, ms] of uses) {
        if (this.#unwritten.get(id) === ms) this.#unwritten.delete(id);
      }
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing) log.warn({ err: error }, 'Cannot write the last use of keys.');
      this.#isFailing = true;
      for (const [id, added] of counts) this.#counts.set(id, added + (this.#counts.get(id) ?? 0));
    }
    this.#written = new Map();
  }
}
