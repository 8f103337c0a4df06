import { readlink } from 'node:fs/promises';
import { basename, dirname, join, parse, resolve, sep } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type FSWatcher, watch } from 'chokidar';
import { type IncludePattern, isIncluded } from './include.ts';
import { configSettleMs } from './limits.ts';

/** How many periods of `configSettleMs` with changes pass before a change is reported anyway. */
const watchRoundsMax = 20;

/** What a FileWatcher watches. */
interface WatchedPaths {
  /** Files and symbolic links; they need not exist yet. */
  readonly paths: ReadonlySet<string>;
  /** Folders, with the patterns of the files in them that count. */
  readonly folders: ReadonlyMap<string, readonly string[]>;
}

/** Watches files, symbolic links and folders for changes. */
export class FileWatcher {
  readonly watched: WatchedPaths;
  /** Resolves when the watch is set up: every later change counts. */
  readonly ready: Promise<unknown>;
  readonly #watcher: FSWatcher;
  #changed = false;
  #closed = false;
  #failure: Error | undefined;
  #event = latch();

  constructor(watched: WatchedPaths) {
    this.watched = watched;
    this.#watcher = watch([...watched.paths, ...watched.folders.keys()], {
      // Of a folder, only its own files.
      depth: 0,
      ignoreInitial: true,
      ignorePermissionErrors: true,
      // A link is watched itself: giving it another target is a change.
      followSymlinks: false,
    });
    this.#watcher.on('all', (_, path) => {
      if (!this.#counts(path)) return;
      this.#changed = true;
      this.#event.resolve();
    });
    this.#watcher.on('error', (error) => {
      this.#failure = error instanceof Error ? error : new Error(String(error));
      this.#event.resolve();
    });
    const scanned = latch();
    this.#watcher.once('ready', scanned.resolve);
    this.ready = Promise.race([scanned.promise, this.#event.promise]);
  }

  /** Whether a change of a path counts: folders have other files, too. */
  #counts(path: string): boolean {
    const { paths, folders } = this.watched;
    const names = paths.has(path) ? undefined : folders.get(dirname(path));
    return names === undefined || names.some((name) => isIncluded(name, basename(path)));
  }

  /**
   * Waits for a change, and then until nothing has changed for `configSettleMs` or the changes have
   * gone on for too long. Resolves to false when the watcher is closed. Rejects if the system
   * cannot watch files.
   */
  async nextChange(): Promise<boolean> {
    if (!this.#changed) await this.#event.promise;
    for (let round = 0; this.#changed && !this.#closed && round < watchRoundsMax; round += 1) {
      this.#changed = false;
      this.#event = latch();
      await delay(configSettleMs);
    }
    if (this.#closed) return false;
    if (this.#failure !== undefined) throw this.#failure;
    return true;
  }

  /** Stops watching; nextChange resolves to false. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#event.resolve();
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

/** The most symbolic links that Linux follows for one path (path_resolution(7)). */
const linksMax = 40;

/**
 * The absolute paths whose changes can change what is read at some paths: the real paths of the
 * files, every symbolic link that leads to them, and the folders of patterns.
 */
export async function pathsToWatch(
  files: readonly string[],
  patterns: readonly IncludePattern[] = [],
): Promise<WatchedPaths> {
  const paths = new Set<string>();
  const folders = new Map<string, readonly string[]>();
  for (const file of files) {
    for (const path of await linksAndTarget(resolve(file))) paths.add(path);
  }
  for (const { folder, name } of patterns) {
    const way = await linksAndTarget(folder);
    const target = way.at(-1) ?? folder;
    for (const link of way.slice(0, -1)) paths.add(link);
    folders.set(target, [...(folders.get(target) ?? []), name]);
  }
  return { paths, folders };
}

async function linksAndTarget(file: string): Promise<readonly string[]> {
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
    // Not a link, or no such file: reading the file reports why it cannot be read.
    return undefined;
  }
}
