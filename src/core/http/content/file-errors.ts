import { Failure, lacksDescriptors, tooManyOpenFiles } from '../../values/failure.ts';

/** Errors of system calls that mean: no file has this name. */
const missingFileCodes: ReadonlySet<unknown> = new Set([
  'ENOENT',
  'ENOTDIR',
  'ENAMETOOLONG',
  'ELOOP',
  'ENXIO',
  'ENODEV',
]);

/**
 * The result of a file system call; undefined if its error means that the file does not exist.
 * Throws `forbidden` if the server may not read the file, `unavailable` if too many files are open,
 * and any other error unchanged.
 */
export function undefinedIfMissing<T>(call: () => T): T | undefined {
  try {
    return call();
  } catch (error) {
    rethrowUnlessMissing(error);
    return undefined;
  }
}

/** The asynchronous form of undefinedIfMissing. */
export async function undefinedIfMissingAsync<T>(call: () => Promise<T>): Promise<T | undefined> {
  try {
    return await call();
  } catch (error) {
    rethrowUnlessMissing(error);
    return undefined;
  }
}

/** The result of a call; undefined if it fails with `forbidden`. */
export function undefinedIfForbidden<T>(call: () => T): T | undefined {
  try {
    return call();
  } catch (thrown) {
    rethrowUnlessForbidden(thrown);
    return undefined;
  }
}

/** The asynchronous form of undefinedIfForbidden. */
export async function undefinedIfForbiddenAsync<T>(call: () => Promise<T>): Promise<T | undefined> {
  try {
    return await call();
  } catch (thrown) {
    rethrowUnlessForbidden(thrown);
    return undefined;
  }
}

function rethrowUnlessForbidden(thrown: unknown): void {
  if (!(thrown instanceof Failure) || thrown.code !== 'forbidden') throw thrown;
}

function rethrowUnlessMissing(error: unknown): void {
  const code = (error as NodeJS.ErrnoException).code;
  if (missingFileCodes.has(code)) return;
  if (code === 'EACCES' || code === 'EPERM') {
    throw new Failure('forbidden', 'The server is not allowed to read this file.', {
      cause: error,
    });
  }
  throw lacksDescriptors(error) ? tooManyOpenFiles() : error;
}
