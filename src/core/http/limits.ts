import { KIB } from '../values/units.ts';

/** Bytes of a method; every registered method is shorter (RFC 9110 §16.1). */
export const methodBytesMax = 32;
export const requestLineBytesMax = 8 * KIB;
export const headerBlockBytesMax = 32 * KIB;
export const headerFieldsMax = 100;

/** The line before a chunk, with its extensions. */
export const chunkLineBytesMax = KIB;
/** All trailer fields of a message. */
export const trailerBytesMax = 8 * KIB;

/** One of the two buffers that a file passes through on its way to a client. */
export const fileChunkBytes = 256 * KIB;
/** Redirects of a file, such as `_redirects`. */
export const redirectLinesMax = 100_000;

/**
 * How long the server uses a cached file, a listing or a "not found" before it checks the disk
 * again. A prepared reply made of it may be used for the same time again: both together are shorter
 * than the second that the documentation promises.
 */
export const fileCacheValidMs = 400;
