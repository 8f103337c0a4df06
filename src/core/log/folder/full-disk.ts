import { constants } from 'node:os';
import { Failure } from '../../values/failure.ts';

const { ENOSPC, EDQUOT, EFBIG, EIO } = constants.errno;
const mapFull = -30792;
const windowsDiskFull = 112;

// lmdb reports EIO when the disk fills up during a write.
const fullCodes: ReadonlySet<unknown> = new Set([
  ENOSPC,
  EDQUOT,
  EFBIG,
  EIO,
  mapFull,
  ...(process.platform === 'win32' ? [windowsDiskFull] : []),
]);

/** Whether lmdb failed because the disk is full or read-only. */
export function isDiskFull(error: unknown): boolean {
  return error instanceof Error && fullCodes.has((error as { code?: unknown }).code);
}

/**
 * The reason of a failed write transaction: `storage_full`, or lmdb's own error. A commit that
 * failed on lmdb's thread carries its reason in a rejected promise; without a handler for it, Node
 * ends the process.
 */
export async function writeErrorOf(error: unknown): Promise<unknown> {
  const cause = await commitErrorOf(error);
  if (!isDiskFull(cause)) return cause;
  return new Failure('storage_full', 'The disk is full or refuses to be written.', { cause });
}

async function commitErrorOf(error: unknown): Promise<unknown> {
  try {
    await (error as { commitError?: Promise<unknown> }).commitError;
    return error;
  } catch (reason) {
    return reason;
  }
}

let isQuiet = false;

/**
 * Keeps lmdb from printing a stack trace when a commit finds the disk full: lmdb rejects the commit
 * too, and its caller logs the error. Other output is unchanged.
 */
export function silenceDiskFullErrors(): void {
  if (isQuiet) return;
  isQuiet = true;
  /* oxlint-disable no-console -- lmdb prints errors with it, and accepts no logger */
  const print = console.error.bind(console);
  console.error = (...values: unknown[]) => {
    const [error, ...more] = values;
    if (more.length === 0 && isDiskFull(error) && isOfLmdb(error as Error)) return;
    print(...values);
  };
  /* oxlint-enable no-console */
}

function isOfLmdb({ stack = '' }: Error): boolean {
  return /[\\/]node_modules[\\/]lmdb[\\/]/.test(stack);
}
