import type { Log } from '../../observability/log.ts';
import { visitBatchKeysMax, visitFlushMs, visitKeysBufferedMax } from '../limits.ts';
import { addCounts, noVisits, type VisitCounts } from './visit-counts.ts';
import { otherKeys, type DayVisits, type VisitDatabase } from './visit-database.ts';

/** The parts of a buffer. */
export interface VisitBufferParts {
  readonly database: VisitDatabase;
  /** How long counts are stored; 0 counts nothing and deletes all stored counts. */
  readonly retentionMs: number;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly log: Log;
}

const dayMs = 86_400_000;

/** Counts of visits in memory, which are added to their database every few seconds. */
export class VisitBuffer {
  readonly database: VisitDatabase;
  readonly #parts: VisitBufferParts;
  #retentionMs: number;
  #pending = new Map<string, DayVisits>();
  #timer: NodeJS.Timeout | undefined;
  /** Writes run one after the other. */
  #writing: Promise<void> = Promise.resolve();
  #isFailing = false;
  #isClosed = false;
  /** The day before which counts have been deleted. */
  #deletedBefore = '';
  /** The last day that was named, and its number since 1970. */
  #today = { number: -1, name: '' };

  constructor(parts: VisitBufferParts) {
    this.#parts = parts;
    this.database = parts.database;
    this.#retentionMs = parts.retentionMs;
  }

  /** How long counts are stored; 0 if nothing is counted. */
  get retentionMs(): number {
    return this.#retentionMs;
  }

  /** Whether counts are taken: not after the end, and not without a retention. */
  get isCounting(): boolean {
    return this.#retentionMs > 0 && !this.#isClosed;
  }

  /** The counts of a path and origin at a time, to be added to; they are written soon. */
  countsAt(nowMs: number, place: { readonly path: string; readonly origin: string }): VisitCounts {
    this.#timer ??= setTimeout(() => void this.flush(), visitFlushMs).unref();
    return this.#countsOf(this.#dayOf(nowMs), place);
  }

  /** Counts from now on as a changed configuration says. */
  retain(retentionMs: number): void {
    this.#retentionMs = retentionMs;
    this.#deletedBefore = '';
    this.#timer ??= setTimeout(() => void this.flush(), visitFlushMs).unref();
  }

  /** Writes the counts in memory. Never rejects: counts that cannot be written stay in memory. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#writing = this.#writing.then(() => this.#write());
    return this.#writing;
  }

  /** Writes the counts in memory, and closes the database. */
  async close(): Promise<void> {
    await this.flush();
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#parts.database.close();
  }

  #countsOf(
    day: string,
    { path, origin }: { readonly path: string; readonly origin: string },
  ): VisitCounts {
    const key = `${day}${origin}\n${path}`;
    const known = this.#pending.get(key);
    if (known !== undefined) return known.counts;
    if (this.#pending.size >= visitKeysBufferedMax && path !== '') {
      return this.#countsOf(day, otherKeys);
    }
    const counts = noVisits();
    this.#pending.set(key, { day, path, origin, counts });
    return counts;
  }

  async #write(): Promise<void> {
    if (this.#isClosed) return;
    const { database, now, log } = this.#parts;
    const written = this.#pending;
    this.#pending = new Map();
    try {
      const oldest = this.#dayOf(now() - this.#retentionMs + dayMs);
      if (oldest !== this.#deletedBefore) {
        await database.deleteBefore(oldest);
        this.#deletedBefore = oldest;
      }
      while (written.size > 0) {
        const batch = [...written].slice(0, visitBatchKeysMax);
        await database.add(batch.map(([, one]) => one));
        for (const [key] of batch) written.delete(key);
      }
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing) log.warn({ err: error }, 'Cannot write the counts of visits.');
      this.#isFailing = true;
      for (const { day, counts, ...key } of written.values()) {
        addCounts(this.#countsOf(day, key), counts);
      }
      this.#timer ??= setTimeout(() => void this.flush(), visitFlushMs).unref();
    }
  }

  /** The UTC day of a time: `2026-11-24`. */
  #dayOf(ms: number): string {
    const number = Math.floor(ms / dayMs);
    if (this.#today.number !== number) {
      const name = new Date(ms).toISOString().slice(0, 'yyyy-mm-dd'.length);
      this.#today = { number, name };
    }
    return this.#today.name;
  }
}
