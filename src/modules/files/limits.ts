import { KIB, MIB } from '../../core/values/units.ts';

/** Files up to this size are cached in memory; larger ones are read while they are sent. */
export const cachedFileBytesMax = 256 * KIB;
/**
 * A file that the server compresses is cached up to this size, so that it is compressed once; a
 * larger one is compressed each time.
 */
export const compressedFileBytesMax = MIB;

/** How often a file or folder that changes while it is read is read again. */
export const diskReadAttemptsMax = 4;
/** Entries of a folder that a listing shows. */
export const listingEntriesMax = 10_000;
