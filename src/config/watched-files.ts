import { setTimeout as delay } from 'node:timers/promises';
import { watch, type FSWatcher } from 'chokidar';
import { configSettleMs } from '../model/limits.ts';

const settleRoundsMax = 20;

/** Some files of which it is known whether they changed; one that is missing may come later. */
export class WatchedFiles {
  /** Resolves once every change from then on is seen. */
  readonly ready: Promise<unknown>;
  readonly #watcher: FSWatcher;
  #files: ReadonlySet<string>;
  #changed = false;
  #closed = false;
  #failure: Error | undefined;
  #news = latch();

  constructor(files: readonly string[]) {
    this.#files = new Set(files);
    this.#watcher = watch([...this.#files], { ignoreInitial: true, ignorePermissionErrors: true });
    this.#watcher.on('all', () => {
      this.#changed = true;
      this.#news.resolve();
    });
    this.#watcher.on('error', (error) => {
      this.#failure = error instanceof Error ? error : new Error(String(error));
      this.#news.resolve();
    });
    const scanned = latch();
    this.#watcher.once('ready', scanned.resolve);
    this.ready = Promise.race([scanned.promise, this.#news.promise]);
  }

  /** Watches these files from now on, and no others. */
  watch(files: readonly string[]): void {
    if (this.#closed) return;
    const next = new Set(files);
    this.#watcher.unwatch([...this.#files].filter((file) => !next.has(file)));
    this.#watcher.add(files.filter((file) => !this.#files.has(file)));
    this.#files = next;
  }

  /**
   * Waits until a file has changed and then been left alone for a moment, or has changed for long;
   * resolves to false once the watch is closed. Rejects when the system cannot watch files.
   */
  async change(): Promise<boolean> {
    if (!this.#changed) await this.#news.promise;
    for (let round = 0; this.#changed && !this.#closed && round < settleRoundsMax; round += 1) {
      this.#changed = false;
      this.#news = latch();
      await delay(configSettleMs);
    }
    if (this.#closed) return false;
    if (this.#failure !== undefined) throw this.#failure;
    return true;
  }

  /** Ends the watch; whoever waits for a change gets false. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#news.resolve();
    await this.#watcher.close();
  }
}

interface Latch {
  readonly promise: Promise<unknown>;
  readonly resolve: () => void;
}

function latch(): Latch {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  return {
    promise,
    resolve() {
      resolve(undefined);
    },
  };
}
