import { dirname, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { ConfigResult, ReadBesides } from './config.ts';
import { includePatterns, type IncludePattern } from './include.ts';
import { readWhenStable } from './stable.ts';
import { pathsToWatch, FileWatcher } from './file-watcher.ts';

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
  if (!result.ok) return result.besides;
  const { file: ini, server, tables, redirects, disk, includedFiles } = result.config;
  const files = [
    ...includedFiles,
    ...tables.flatMap(({ schemaFile }) => schemaFile ?? []),
    ...redirects.flatMap(({ file }) => file ?? []),
    ...disk.flatMap(({ root, redirects: file, headersFile }) =>
      [file, headersFile].flatMap((name) => (name === undefined ? [] : [join(root, name)])),
    ),
  ];
  return { files, patterns: includePatterns(server.include, dirname(ini)) };
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
