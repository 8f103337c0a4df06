import { isDeepStrictEqual } from 'node:util';
import type { ConfigResult } from './config.ts';
import { placesOf } from './places.ts';
import { WatchedPlaces } from './watched-places.ts';

/**
 * Follows an ini file, the table schemas it names and the links on the way to them: after each
 * change, once the files have been left alone for a moment, reads again and yields the outcome;
 * never reads twice at the same time. Ends when the signal aborts. Throws when the system cannot
 * watch files.
 *
 * `current` is the outcome that the caller has already: if the file has changed between that and
 * the start of the watch, the first outcome says so.
 */
export async function* configResults({
  file,
  current,
  read,
  signal,
}: {
  readonly file: string;
  readonly current: ConfigResult;
  readonly read: () => Promise<ConfigResult>;
  readonly signal: AbortSignal;
}): AsyncGenerator<ConfigResult, void, undefined> {
  const isOver = () => signal.aborted;
  if (isOver()) return;
  let schemas = schemaFiles(current) ?? [];
  let watched = new WatchedPlaces(await placesOf([file, ...schemas]));
  const end = () => void watched.close();
  signal.addEventListener('abort', end);
  try {
    let told = current;
    let isChanged = false;
    await watched.ready;
    while (!isOver()) {
      const result = await read();
      // A file that is broken names no schemas: those of before it broke stay watched.
      schemas = schemaFiles(result) ?? schemas;
      const places = await placesOf([file, ...schemas]);
      if (isOver()) return;
      if (!isDeepStrictEqual(places, watched.places)) {
        await watched.close();
        watched = new WatchedPlaces(places);
        await watched.ready;
        // Read again: what happened before the new places were watched is not lost either.
        continue;
      }
      if (isChanged || !isDeepStrictEqual(result, told)) {
        told = result;
        yield result;
      }
      isChanged = await watched.change();
    }
  } finally {
    signal.removeEventListener('abort', end);
    await watched.close();
  }
}

function schemaFiles(result: ConfigResult): readonly string[] | undefined {
  return result.ok ? result.config.tables.map(({ schemaFile }) => schemaFile) : undefined;
}
