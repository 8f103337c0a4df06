import { readlink } from 'node:fs/promises';
import { join, parse, resolve, sep } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { watch, type FSWatcher } from 'chokidar';
import { configSettleMs } from './limits.ts';

const settleRoundsMax = 20;

/** Some files and links of which it is known whether they changed; a missing one may come later. */
export class WatchedPlaces {
  readonly places: ReadonlySet<string>;
  /** Resolves once every change from then on is seen. */
  readonly ready: Promise<unknown>;
  readonly #watcher: FSWatcher;
  #changed = false;
  #closed = false;
  #failure: Error | undefined;
  #news = latch();

  constructor(places: ReadonlySet<string>) {
    this.places = places;
    this.#watcher = watch([...places], {
      ignoreInitial: true,
      ignorePermissionErrors: true,
      // A link is a place of its own here, and turning it elsewhere a change of it.
      followSymlinks: false,
    });
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

  /**
   * Waits until a place has changed and then been left alone for a moment, or has changed for
   * long; resolves to false once the watch is closed. Rejects when the system cannot watch files.
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

/** As many links on the way to one file as Linux follows (path_resolution(7)). */
const linksMax = 40;

/**
 * The places in the file system that decide what is read at these paths: the files themselves,
 * under their real names, and every symbolic link on the way to them; absolute paths.
 */
export async function placesOf(files: readonly string[]): Promise<ReadonlySet<string>> {
  const places = new Set<string>();
  for (const file of files) {
    for (const place of await placesOnTheWay(resolve(file))) places.add(place);
  }
  return places;
}

async function placesOnTheWay(file: string): Promise<readonly string[]> {
  const links: string[] = [];
  let { root: at } = parse(file);
  let pending = segments(file);
  for (let segment = pending.shift(); segment !== undefined; segment = pending.shift()) {
    const next = join(at, segment);
    const target = await linkTarget(next);
    if (target === undefined || links.length === linksMax) {
      at = next;
      continue;
    }
    links.push(next);
    const path = resolve(at, target);
    pending = [...segments(path), ...pending];
    at = parse(path).root;
  }
  return [...links, at];
}

function segments(path: string): string[] {
  return path.slice(parse(path).root.length).split(sep).filter(Boolean);
}

async function linkTarget(path: string): Promise<string | undefined> {
  try {
    return await readlink(path);
  } catch {
    // Not a link, or nothing at all: what is wrong with it, reading the file will say.
    return undefined;
  }
}
