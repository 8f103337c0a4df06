import type { Config } from '../config/config.ts';
import { VisitBuffer, type VisitBufferParts } from '../store/visits/visit-buffer.ts';
import { VisitDatabase, type DaySpan, type DayVisits } from '../store/visits/visit-database.ts';
import { visitFlushMs } from '../store/limits.ts';
import { pagesCountedEach, pagesCountedExactly } from './limits.ts';

/** Opens the counter of a data folder. Throws the errors of lmdb. */
export function openPageCounter(
  { server, stats }: Pick<Config, 'server' | 'stats'>,
  { now, log }: Pick<VisitBufferParts, 'now' | 'log'>,
): PageCounter {
  const database = new VisitDatabase(server.data, 'pages');
  return new PageCounter({ database, retentionMs: stats.retentionMs, now, log });
}

/**
 * Counts how often pages are answered, by path (docs/design/drafts.md#the-most-visited-pages). Of a
 * busy server it counts a sample, which takes no time that visitors would notice.
 */
export class PageCounter {
  readonly #buffer: VisitBuffer;
  #periodEndMs = 0;
  #answers = 0;

  constructor(parts: VisitBufferParts) {
    this.#buffer = new VisitBuffer(parts);
  }

  /** Counts an answer to a visitor, unless it is a failure or one of Waymark's own. */
  count(
    place: { readonly origin: string; readonly path: string },
    { status, source }: { readonly status: number; readonly source: string },
    nowMs: number,
  ): void {
    if (nowMs >= this.#periodEndMs) {
      this.#periodEndMs = nowMs + visitFlushMs;
      this.#answers = 0;
    }
    this.#answers += 1;
    const isSampled = this.#answers > pagesCountedExactly;
    if (isSampled && this.#answers % pagesCountedEach !== 0) return;
    if (status >= 400 || source === 'svc1' || source === 'none') return;
    if (!this.#buffer.isCounting) return;
    this.#buffer.countsAt(nowMs, place).visits += isSampled ? pagesCountedEach : 1;
  }

  /** The written counts of all pages by day. */
  ofAll(span: DaySpan): AsyncIterable<DayVisits> {
    return this.#buffer.database.ofAll(span);
  }

  /** Counts from now on as a changed configuration says. */
  retain(retentionMs: number): void {
    this.#buffer.retain(retentionMs);
  }

  /** Writes the counts in memory, and deletes those that are too old. Never rejects. */
  flush(): Promise<void> {
    return this.#buffer.flush();
  }

  /** Writes the counts in memory, and closes the database. */
  close(): Promise<void> {
    return this.#buffer.close();
  }
}
