const KIB = 1024;

/** Of a method: longer than any in the registry (RFC 9110 §16.1). */
export const methodBytesMax = 32;
export const requestLineBytesMax = 8 * KIB;
export const headerBlockBytesMax = 32 * KIB;
export const headerFieldsMax = 100;
/** Empty lines before a request line, which a faulty client sends after its content. */
export const emptyLinesMax = 4;
/** The line before a chunk, including its extensions. */
export const chunkLineBytesMax = KIB;
/** All trailer fields of a message. */
export const trailerBytesMax = 8 * KIB;
/** Ranges of one request; the whole page is sent if there are more. */
export const rangesMax = 16;
/** Elements of an Accept, Accept-Language or Accept-Encoding field; later ones are ignored. */
export const acceptElementsMax = 64;
/** Parsed Accept-Encoding fields in memory, and the longest field that is remembered. */
export const acceptEncodingsKnownMax = 64;
export const acceptEncodingCharactersMax = 256;
/** Hops of a Forwarded or X-Forwarded-For field that are read, counted from the server's side. */
export const forwardedHopsMax = 32;
/** Up to this size, several ranges of a page are copied into one piece. */
export const partsCopiedBytesMax = 64 * KIB;
/** One of the two buffers through which a file is sent. */
export const fileChunkBytes = 256 * KIB;
