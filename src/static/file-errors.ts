import { Failure, lacksDescriptors, tooManyOpenFiles } from '../model/failure.ts';

const absent: ReadonlySet<unknown> = new Set([
  'ENOENT',
  'ENOTDIR',
  'ENAMETOOLONG',
  'ELOOP',
  'ENXIO',
  'ENODEV',
]);

/**
 * What looking at a file system came to: its result, or undefined where its error means that
 * nothing is there. Throws `forbidden` where reading is not allowed, `unavailable` when too many
 * files are open, and any other error as it is.
 */
export function unlessAbsent<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch (error) {
    requireAbsence(error);
    return undefined;
  }
}

/** The asynchronous form of unlessAbsent. */
export async function unlessAbsentLater<T>(look: () => Promise<T>): Promise<T | undefined> {
  try {
    return await look();
  } catch (error) {
    requireAbsence(error);
    return undefined;
  }
}

/** What a look came to; undefined where it fails with `forbidden`, as for what may not be read. */
export function unlessForbidden<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch (thrown) {
    requireForbidden(thrown);
    return undefined;
  }
}

/** The asynchronous form of unlessForbidden. */
export async function unlessForbiddenLater<T>(look: () => Promise<T>): Promise<T | undefined> {
  try {
    return await look();
  } catch (thrown) {
    requireForbidden(thrown);
    return undefined;
  }
}

function requireForbidden(thrown: unknown): void {
  if (!(thrown instanceof Failure) || thrown.code !== 'forbidden') throw thrown;
}

function requireAbsence(error: unknown): void {
  const code = (error as NodeJS.ErrnoException).code;
  if (absent.has(code)) return;
  if (code === 'EACCES' || code === 'EPERM') {
    throw new Failure('forbidden', 'The server is not allowed to read this file.', {
      cause: error,
    });
  }
  throw lacksDescriptors(error) ? tooManyOpenFiles() : error;
}
