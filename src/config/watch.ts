import { isDeepStrictEqual } from 'node:util';
import type { ConfigResult } from './config.ts';
import { readWhenStable } from './stable.ts';
import { placesOf, WatchedPlaces } from './watched-places.ts';

/**
 * Follows an ini file, the table schemas it names and the links on the way to them: after each
 * change, once the files are stable, reads again and yields the outcome; never reads twice at the
 * same time. Ends when the signal aborts. Throws when the system cannot
 * watch files.
 *
 * `current` is the outcome that the caller has already: if the file has changed between that and
 * the start of the watch, the first outcome says so.
 */
export async function* configResults({
  file,
  current,
  read,
  now,
  signal,
}: {
  readonly file: string;
  readonly current: ConfigResult;
  readonly read: () => Promise<ConfigResult>;
  readonly now: () => number;
  readonly signal: AbortSignal;
}): AsyncGenerator<ConfigResult, void, undefined> {
  let schemas = schemaFiles(current) ?? [];
  let told = current;
  for await (const why of fileChanges(() => [file, ...schemas], signal)) {
    const result = await readWhenStable({ files: [file, ...schemas], read, now, signal });
    // A file that is broken names no schemas: those of before it broke stay watched.
    schemas = schemaFiles(result) ?? schemas;
    if (signal.aborted) return;
    if (why === 'changed' || !isDeepStrictEqual(result, told)) {
      told = result;
      yield result;
    }
  }
}

function schemaFiles(result: ConfigResult): readonly string[] | undefined {
  return result.ok ? result.config.tables.map(({ schemaFile }) => schemaFile) : undefined;
}

/**
 * Follows files and the links on the way to them: yields `first` when it is time to read them, then
 * `changed` each time that they have changed and been left alone for a moment. What `files` names
 * may be another list after each reading; `again` then says that what had not been watched before
 * has to be read once more. Ends when the signal aborts. Throws when the system cannot watch files.
 */
export async function* fileChanges(
  files: () => readonly string[],
  signal: AbortSignal,
): AsyncGenerator<'first' | 'changed' | 'again', void, undefined> {
  const isOver = () => signal.aborted;
  if (isOver()) return;
  let watched = new WatchedPlaces(await placesOf(files()));
  const end = () => void watched.close();
  signal.addEventListener('abort', end);
  try {
    await watched.ready;
    let why: 'first' | 'changed' | 'again' = 'first';
    while (!isOver()) {
      yield why;
      const places = await placesOf(files());
      if (isOver()) return;
      if (isDeepStrictEqual(places, watched.places)) {
        if (!(await watched.change())) return;
        why = 'changed';
      } else {
        await watched.close();
        watched = new WatchedPlaces(places);
        await watched.ready;
        why = 'again';
      }
    }
  } finally {
    signal.removeEventListener('abort', end);
    await watched.close();
  }
}
