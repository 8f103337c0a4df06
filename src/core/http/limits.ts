const KIB = 1024;

/** Bytes of a method; every registered method is shorter (RFC 9110 §16.1). */
export const methodBytesMax = 32;
export const requestLineBytesMax = 8 * KIB;
export const headerBlockBytesMax = 32 * KIB;
export const headerFieldsMax = 100;
/** Empty lines before a request line: a faulty client sends some after its content. */
export const emptyLinesMax = 4;
/** The line before a chunk, with its extensions. */
export const chunkLineBytesMax = KIB;
/** All trailer fields of a message. */
export const trailerBytesMax = 8 * KIB;
/** Ranges of one request; with more, the server sends the whole page. */
export const rangesMax = 16;
/**
 * Elements of an Accept, Accept-Language or Accept-Encoding field; the server ignores later ones.
 */
export const acceptElementsMax = 64;
/** Values of Accept and Accept-Encoding that are cached in parsed form, and the longest of them. */
export const acceptValuesCachedMax = 64;
export const acceptValueCharactersMax = 256;
/** Hops that the server reads of a Forwarded or X-Forwarded-For field: the last ones. */
export const forwardedHopsMax = 32;
/** Up to this size, the server copies several ranges of a page into one buffer. */
export const partsCopiedBytesMax = 64 * KIB;
/** One of the two buffers that a file passes through on its way to a client. */
export const fileChunkBytes = 256 * KIB;
/** Redirects of a file, such as `_redirects`. */
export const redirectLinesMax = 100_000;
export const redirectLineCharactersMax = 4 * KIB;
/** Bytes of a file that are read at once, by code that needs only a part of them in memory. */
export const chunkBytesMax = 2 ** 20;
