import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { ConfigResult } from './config.ts';
import { readWhenStable } from './stable.ts';
import { pathsToWatch, FileWatcher } from './file-watcher.ts';

/**
 * Watches an ini file, the schemas, redirects and header fields that it names, and the symbolic
 * links to these files. After each change it waits until the files are stable, reads them and
 * yields the result; it never reads twice at the same time. Ends when the signal aborts. Throws if
 * the system cannot watch files.
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
  let named = namedFiles(current) ?? [];
  let latest = current;
  // A change during the first read of the files is in its result already.
  let mayRepeat = false;
  for await (const why of fileChanges(() => [...ini, ...named], signal)) {
    if (why === 'first') watching?.();
    const result = await readWhenStable({ files: [...ini, ...named], read, now, signal });
    // A broken file may name no others: those of the file before stay watched.
    named = namedFiles(result) ?? named;
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

function namedFiles(result: ConfigResult): readonly string[] | undefined {
  if (!result.ok) return result.namedFiles;
  const { tables, redirects, disk } = result.config;
  return [
    ...tables.flatMap(({ schemaFile }) => schemaFile ?? []),
    ...redirects.flatMap(({ file }) => file ?? []),
    ...disk.flatMap(({ root, redirects: file, headersFile }) =>
      [file, headersFile].flatMap((name) => (name === undefined ? [] : [join(root, name)])),
    ),
  ];
}

/**
 * Watches files and the symbolic links to them. Yields `first` once the watch is set up, and
 * `changed` after each change. `files` may return other files after each of these; then it yields
 * `again` once the new ones are watched, since they may have changed before. Ends when the signal
 * aborts. Throws if the system cannot watch files.
 */
export async function* fileChanges(
  files: () => readonly string[],
  signal: AbortSignal,
): AsyncGenerator<'first' | 'changed' | 'again', void, undefined> {
  const hasEnded = () => signal.aborted;
  if (hasEnded()) return;
  let watched = new FileWatcher(await pathsToWatch(files()));
  const end = () => void watched.close();
  signal.addEventListener('abort', end);
  try {
    await watched.ready;
    let why: 'first' | 'changed' | 'again' = 'first';
    while (!hasEnded()) {
      yield why;
      const paths = await pathsToWatch(files());
      if (hasEnded()) return;
      if (isDeepStrictEqual(paths, watched.paths)) {
        if (!(await watched.nextChange())) return;
        why = 'changed';
      } else {
        await watched.close();
        watched = new FileWatcher(paths);
        await watched.ready;
        why = 'again';
      }
    }
  } finally {
    signal.removeEventListener('abort', end);
    await watched.close();
  }
}
