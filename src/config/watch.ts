import { isDeepStrictEqual } from 'node:util';
import type { ConfigResult } from './config.ts';
import { WatchedFiles } from './watched-files.ts';

/**
 * Follows an ini file and the table schemas it names: after each change, once the files have been
 * left alone for a moment, reads again and yields the outcome; never reads twice at the same time.
 * Ends when the signal aborts. Throws when the system cannot watch files.
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
  readonly current?: ConfigResult;
  readonly read: () => Promise<ConfigResult>;
  readonly signal: AbortSignal;
}): AsyncGenerator<ConfigResult, void, undefined> {
  const isOver = () => signal.aborted;
  if (isOver()) return;
  const files = new WatchedFiles([file, ...(schemaFiles(current) ?? [])]);
  const end = () => void files.close();
  signal.addEventListener('abort', end);
  // A file that is broken names no schemas: those of before it broke stay watched.
  const readAndWatch = async () => {
    const result = await read();
    const schemas = schemaFiles(result);
    if (schemas !== undefined) files.watch([file, ...schemas]);
    return result;
  };
  try {
    await files.ready;
    const first = await readAndWatch();
    if (current !== undefined && !isDeepStrictEqual(first, current)) yield first;
    while (await files.change()) {
      const result = await readAndWatch();
      if (isOver()) return;
      yield result;
    }
  } finally {
    signal.removeEventListener('abort', end);
    await files.close();
  }
}

function schemaFiles(result: ConfigResult | undefined): readonly string[] | undefined {
  return result?.ok === true ? result.config.tables.map(({ schemaFile }) => schemaFile) : undefined;
}
