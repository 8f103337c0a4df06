import type { Log } from '../../core/report/log.ts';
import { type VisitCounts, addCounts, noVisits } from './visit-counts.ts';
import { type DayVisits, type VisitTable, otherKeys } from './visit-database.ts';

/** Characters of a Referer that are read for its host, and referring hosts in memory. */
const refererCharactersMax = 2_048;
const nothing = '(none)';
const unknown = '(unknown)';

/** The longest time that counts of visits are only in memory. */
const visitFlushMs = 5_000;

/** The most breadcrumbs or pages with counts in one transaction. */
const visitBatchKeysMax = 500;

interface BufferParts<D extends string> {
  readonly table: VisitTable<D>;
  /** Keys with counts in memory; further ones are counted together. */
  readonly keysMax: number;
  /** How long counts are stored; 0 deletes all stored counts. */
  readonly retentionMs: number;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly log: Log;
  /** Called before each write: adds to the counts in memory. */
  readonly collect?: () => void;
}

const dayMs = 86_400_000;

/** Counts of visits in memory, which are added to the database every few seconds. */
export class VisitBuffer<D extends string> {
  readonly #parts: BufferParts<D>;
  #retentionMs: number;
  #pending = new Map<string, DayVisits<D>>();
  #timer: NodeJS.Timeout | undefined;
  /** Writes run one after the other. */
  #writing: Promise<void> = Promise.resolve();
  #isFailing = false;
  #isClosed = false;
  /** The day before which counts have been deleted. */
  #deletedBefore = '';

  constructor(parts: BufferParts<D>) {
    this.#parts = parts;
    this.#retentionMs = parts.retentionMs;
  }

  /** How long counts are stored; 0 if nothing is to be counted. */
  get retentionMs(): number {
    return this.#retentionMs;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Stores counts as long as a changed configuration says. */
  retain(retentionMs: number): void {
    this.#retentionMs = retentionMs;
    this.#deletedBefore = '';
    this.schedule();
  }

  /** The counts in memory of a key and day, to be added to at once; they will be written. */
  countsOf(day: string, { path, origin }: typeof otherKeys): VisitCounts<D> {
    const key = `${day}${origin}\n${path}`;
    const known = this.#pending.get(key);
    if (known !== undefined) return known.counts;
    const { table, keysMax } = this.#parts;
    if (this.#pending.size >= keysMax && path !== '') return this.countsOf(day, otherKeys);
    const counts = noVisits(table.shape);
    this.#pending.set(key, { day, path, origin, counts });
    this.schedule();
    return counts;
  }

  /** Writes the counts in memory. Never rejects: counts that cannot be written stay in memory. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#writing = this.#writing.then(() => this.#write());
    return this.#writing;
  }

  /** Writes the counts in memory, and counts no more. */
  async close(): Promise<void> {
    await this.flush();
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  /** Begins to wait for the next write. */
  schedule(): void {
    this.#timer ??= setTimeout(() => void this.flush(), visitFlushMs).unref();
  }

  async #write(): Promise<void> {
    if (this.#isClosed) return;
    const { table, now, log, collect } = this.#parts;
    collect?.();
    const written = this.#pending;
    this.#pending = new Map();
    try {
      const oldest = dayOf(now() - this.#retentionMs + dayMs);
      if (oldest !== this.#deletedBefore) {
        await table.deleteBefore(oldest);
        this.#deletedBefore = oldest;
      }
      while (written.size > 0) {
        const batch = [...written].slice(0, visitBatchKeysMax);
        await table.add(batch.map(([, one]) => one));
        for (const [key] of batch) written.delete(key);
      }
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing) log.warn({ err: error }, 'Cannot write the counts of visits.');
      this.#isFailing = true;
      for (const { day, counts, ...key } of written.values()) {
        addCounts(this.countsOf(day, key), counts, table.shape);
      }
      this.schedule();
    }
  }
}

/** The UTC day of a time in milliseconds since 1970: `2026-11-24`. */
export function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 'yyyy-mm-dd'.length);
}

/** The host in a Referer (RFC 9110 §10.1.3), without its port; `(none)` without the field. */
export function referringHost(referer: string | undefined): string {
  if (referer === undefined || referer === '') return nothing;
  // Only the host is of interest, and a URL that is cut off still has it.
  const url = URL.parse(referer.slice(0, refererCharactersMax));
  const isWeb = url?.protocol === 'http:' || url?.protocol === 'https:';
  return isWeb && url.hostname !== '' ? url.hostname.slice(0, 253) : unknown;
}
