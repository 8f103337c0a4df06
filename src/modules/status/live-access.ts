import { SharedLimit, type Sharer } from '../../core/fair/shared-limit.ts';
import type { AccessEntry } from '../../core/report/access-entry.ts';
import { withoutKeys } from '../logs/access-log.ts';

/** Readers of the live access log of a process. */
export const liveReadersMax = 32;

/** Unread lines of the live access log that the server keeps for a reader. */
export const liveRowsMax = 1_000;

/** How often a process sends its lines to the others that have readers. */
const liveSendMs = 200;

/** A line of the live access log, in the names that operations use. */
export interface AccessRow {
  /** ISO 8601, UTC: the end of the answer. */
  readonly time: string;
  readonly address: string;
  readonly method: string;
  readonly host: string;
  readonly target: string;
  readonly status: number;
  readonly bytes: number;
  readonly ms: number;
  readonly source: string;
  readonly user_agent?: string;
  readonly referer?: string;
  readonly cache?: string;
  /** The id of the failure. */
  readonly id?: string;
  /** The id of the caller's key. */
  readonly key?: string;
  readonly cut?: true;
}

/** Lines that arrived together, and how many are missing before them. */
export interface AccessRows {
  readonly rows: readonly AccessRow[];
  readonly dropped: number;
}

/** The other processes that share the port: they exchange lines for readers. */
export interface AccessPeers {
  /** Tells them whether this process has readers. */
  watch(isWatching: boolean): void;
  /** Sends them lines of this process. */
  send(lines: AccessRows): void;
}

/**
 * The access log for live readers. Without a reader, a request costs one comparison. A reader that
 * is too slow loses the oldest lines, and gets their number.
 */
export class LiveAccess {
  readonly #now: () => number;
  readonly #peers: AccessPeers | undefined;
  readonly #readers = new Set<AccessReader>();
  readonly #places = new SharedLimit({
    what: 'live access logs',
    limit: 'live_access',
    held: 'long',
    max: liveReadersMax,
  });
  #isWatchedElsewhere = false;
  #unsent = new AccessReader(() => true);
  #isSending = false;

  constructor({ now, peers }: { readonly now: () => number; readonly peers?: AccessPeers }) {
    this.#now = now;
    this.#peers = peers;
  }

  /** Whether there is a reader, so that `add` has an effect. */
  get isWatched(): boolean {
    return this.#readers.size > 0 || this.#isWatchedElsewhere;
  }

  /** Adds an answered request, with the same masks as the access log. */
  add(entry: AccessEntry): void {
    const row = accessRow(withoutKeys(entry), this.#now());
    for (const reader of this.#readers) reader.add(row);
    if (!this.#isWatchedElsewhere) return;
    this.#unsent.add(row);
    if (this.#isSending) return;
    this.#isSending = true;
    setTimeout(() => {
      this.#isSending = false;
      this.#peers?.send(this.#unsent.take());
    }, liveSendMs).unref();
  }

  /** Takes lines of another process. */
  receive({ rows, dropped }: AccessRows): void {
    for (const reader of this.#readers) {
      for (const row of rows) reader.add(row);
      reader.lose(dropped);
    }
  }

  /** Says whether another process has readers. */
  setWatchedElsewhere(isWatched: boolean): void {
    this.#isWatchedElsewhere = isWatched;
    if (!isWatched) this.#unsent = new AccessReader(() => true);
  }

  /**
   * The lines that match from now on, several at a time if the reader is slow, until the signal
   * aborts. Throws `rate_limited` if the client reads too many already, and `unavailable` if all
   * clients together do.
   */
  read(
    matches: (row: AccessRow) => boolean,
    client: Sharer,
  ): (signal: AbortSignal) => AsyncGenerator<AccessRows, void, undefined> {
    this.#places.require(client);
    return (signal) => this.#lines(new AccessReader(matches), client, signal);
  }

  async *#lines(
    reader: AccessReader,
    client: Sharer,
    signal: AbortSignal,
  ): AsyncGenerator<AccessRows, void, undefined> {
    this.#places.take(client, 1);
    this.#readers.add(reader);
    if (this.#readers.size === 1) this.#peers?.watch(true);
    try {
      for (;;) {
        await reader.filled(signal);
        if (signal.aborted) return;
        yield reader.take();
      }
    } finally {
      this.#readers.delete(reader);
      this.#places.giveBack(client, 1);
      if (this.#readers.size === 0) this.#peers?.watch(false);
    }
  }
}

/** The unread lines of one reader. */
class AccessReader {
  readonly #matches: (row: AccessRow) => boolean;
  #rows: AccessRow[] = [];
  #dropped = 0;
  #wake: () => void = () => undefined;

  constructor(matches: (row: AccessRow) => boolean) {
    this.#matches = matches;
  }

  add(row: AccessRow): void {
    if (!this.#matches(row)) return;
    this.#rows.push(row);
    // Half of them at once, because each removal moves all that stay.
    if (this.#rows.length > liveRowsMax) {
      this.#dropped += this.#rows.splice(0, Math.ceil(liveRowsMax / 2)).length;
    }
    this.#wake();
  }

  /** Counts lines that another process has dropped; some may not have matched. */
  lose(count: number): void {
    if (count === 0) return;
    this.#dropped += count;
    this.#wake();
  }

  take(): AccessRows {
    const [rows, dropped] = [this.#rows, this.#dropped];
    [this.#rows, this.#dropped] = [[], 0];
    return { rows, dropped };
  }

  /** Resolves when there is something to take, or the signal aborts. */
  async filled(signal: AbortSignal): Promise<void> {
    if (this.#rows.length > 0 || this.#dropped > 0 || signal.aborted) return;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      signal.addEventListener('abort', this.#wake, { once: true });
    });
    signal.removeEventListener('abort', this.#wake);
  }
}

function accessRow(entry: AccessEntry, nowMs: number): AccessRow {
  const { address, method, host, target, status, bytes, durationMs, source } = entry;
  return {
    time: new Date(nowMs).toISOString(),
    ...{ address, method, host, target, status, bytes, source },
    ms: Math.round(durationMs * 100) / 100,
    ...(entry.userAgent !== '' && { user_agent: entry.userAgent }),
    ...(entry.referer !== '' && { referer: entry.referer }),
    ...(entry.cache !== undefined && { cache: entry.cache }),
    ...(entry.failureId !== undefined && { id: entry.failureId }),
    ...(entry.keyId !== undefined && { key: entry.keyId }),
    ...(entry.cut && { cut: true as const }),
  };
}
