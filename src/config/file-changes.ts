import { isDeepStrictEqual } from 'node:util';
import { placesOf } from './places.ts';
import { WatchedPlaces } from './watched-places.ts';

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
