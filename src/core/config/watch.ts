import { readlink, stat } from 'node:fs/promises';
import { basename, dirname, join, parse, resolve, sep } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { type FSWatcher, watch } from 'chokidar';
import type { ConfigResult, ReadBesides } from './config.ts';
import { type IncludePattern, isIncluded } from './include.ts';
import { configSettleMs } from './limits.ts';

/** How many periods of `configSettleMs` with changes pass before a change is reported anyway. */
const watchRoundsMax = 20;

/** Watches files, symbolic links and folders for changes. */
class FileWatcher {
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

/** The most symbolic links that Linux follows for one path (path_resolution(7)). */
const linksMax = 40;

/** How often the server looks whether the ini file is still being written, 10 s in all. */
const configSettleRoundsMax = 100;

/**
 * Watches an ini file, the files that it includes, the schemas, redirects and header fields that
 * they name, and the symbolic links to these files. After each change it waits until the files are
 * stable, reads them and yields the result; it never reads twice at the same time. Ends when the
 * signal aborts. Throws if the system cannot watch files.
 *
 * `current` is the result that the caller already has: if the files have changed since, the first
 * result that is yielded is the new one. `watching` is called once the watch is set up.
 */
export async function* watchConfig({
  file,
  current,
  read,
  now,
  signal,
  watching,
}: {
  /** The ini file; undefined for a folder that is served without one. */
  readonly file: string | undefined;
  readonly current: ConfigResult;
  readonly read: () => Promise<ConfigResult>;
  readonly now: () => number;
  readonly signal: AbortSignal;
  readonly watching?: () => void;
}): AsyncGenerator<ConfigResult, void, undefined> {
  const ini = file === undefined ? [] : [file];
  let besides: ReadBesides = readBesides(current) ?? { files: [], patterns: [] };
  let latest = current;
  // A change during the first read of the files is in its result already.
  let mayRepeat = false;
  const files = (): readonly string[] => [...ini, ...besides.files];
  for await (const why of fileChanges(files, signal, () => besides.patterns)) {
    if (why === 'first') watching?.();
    const result = await readWhenStable({ files: files(), read, now, signal });
    // A broken file may name no others: those of the file before stay watched.
    besides = readBesides(result) ?? besides;
    if (signal.aborted) return;
    const isNew = !isDeepStrictEqual(result, latest);
    const isRepeat = mayRepeat && !isNew && result.ok;
    mayRepeat = why !== 'changed' && isNew;
    if (isNew || (why === 'changed' && !isRepeat)) {
      latest = result;
      yield result;
    }
  }
}

/** The files besides the ini file that a result comes from, also those that may be added. */
function readBesides(result: ConfigResult): ReadBesides | undefined {
  return result.ok ? result.config.besides : result.besides;
}

/**
 * Watches files and the symbolic links to them, and folders for the files that `patterns` name.
 * Yields `first` once the watch is set up, and `changed` after each change. `files` and `patterns`
 * may return others after each of these; then it yields `again` once the new ones are watched,
 * since they may have changed before. Ends when the signal aborts. Throws if the system cannot
 * watch files.
 */
export async function* fileChanges(
  files: () => readonly string[],
  signal: AbortSignal,
  patterns: () => readonly IncludePattern[] = () => [],
): AsyncGenerator<'first' | 'changed' | 'again', void, undefined> {
  const hasEnded = () => signal.aborted;
  if (hasEnded()) return;
  let watched = new FileWatcher(await pathsToWatch(files(), patterns()));
  const end = () => void watched.close();
  signal.addEventListener('abort', end);
  try {
    await watched.ready;
    let why: 'first' | 'changed' | 'again' = 'first';
    while (!hasEnded()) {
      yield why;
      const next = await pathsToWatch(files(), patterns());
      if (hasEnded()) return;
      if (isDeepStrictEqual(next, watched.watched)) {
        if (!(await watched.nextChange())) return;
        why = 'changed';
      } else {
        await watched.close();
        watched = new FileWatcher(next);
        await watched.ready;
        why = 'again';
      }
    }
  } finally {
    signal.removeEventListener('abort', end);
    await watched.close();
  }
}

/**
 * Reads a configuration once its files have not changed for `configSettleMs`, so that no file is
 * read while a program writes it. The first of `files` is the ini file; a file that does not exist
 * counts as unchanged. Resolves to a problem if the files keep changing.
 */
export async function readWhenStable({
  files,
  read,
  now,
  signal,
}: {
  readonly files: readonly string[];
  readonly read: () => Promise<ConfigResult>;
  readonly now: () => number;
  /** Ends the wait early. */
  readonly signal?: AbortSignal;
}): Promise<ConfigResult> {
  let seen = await fingerprints(files);
  for (let round = 0; round < configSettleRoundsMax; round += 1) {
    if (signal?.aborted === true) break;
    const isStable = seen.every((file) => isOld(file, now())) || (await isUnchanged(files, seen));
    if (isStable) {
      const result = await read();
      if (isDeepStrictEqual(await fingerprints(files), seen)) return result;
    }
    seen = await fingerprints(files);
  }
  const message =
    'the ini file, or a file that it names, keeps changing, so it was not read: ' +
    'write it once, and leave it unchanged for 0.1 s';
  return { ok: false, problems: [{ file: files[0] ?? '', line: 0, message }] };
}

interface Fingerprint {
  readonly inode: bigint;
  readonly bytes: bigint;
  /** The system updates it at each write, truncation and rename (inode(7)). */
  readonly changedMs: bigint;
  readonly changedNs: bigint;
}

async function isUnchanged(
  files: readonly string[],
  seen: readonly (Fingerprint | undefined)[],
): Promise<boolean> {
  await delay(configSettleMs);
  return isDeepStrictEqual(await fingerprints(files), seen);
}

function isOld(file: Fingerprint | undefined, nowMs: number): boolean {
  return file === undefined || nowMs - Number(file.changedMs) > configSettleMs;
}

function fingerprints(files: readonly string[]): Promise<(Fingerprint | undefined)[]> {
  return Promise.all(
    files.map(async (file) => {
      try {
        const { ino, size, ctimeMs, ctimeNs } = await stat(file, { bigint: true });
        return { inode: ino, bytes: size, changedMs: ctimeMs, changedNs: ctimeNs };
      } catch {
        // Reading the file reports why it cannot be read.
        return undefined;
      }
    }),
  );
}

/** What a FileWatcher watches. */
interface WatchedPaths {
  /** Files and symbolic links; they need not exist yet. */
  readonly paths: ReadonlySet<string>;
  /** Folders, with the patterns of the files in them that count. */
  readonly folders: ReadonlyMap<string, readonly string[]>;
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

/**
 * The absolute paths whose changes can change what is read at some paths: the real paths of the
 * files, every symbolic link that leads to them, and the folders of patterns.
 */
async function pathsToWatch(
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
