const KIB = 1024;
const MIB = 1024 * KIB;

/** Content below this size is not compressed: it fits into one packet anyway. */
export const compressBytesMin = KIB;
/** Pages up to this size are compressed as well as possible, larger ones in reasonable time. */
export const compressBestBytesMax = 256 * KIB;
/** All compressed pages in memory. */
export const compressedPagesBytesMax = 64 * MIB;
/** Content of pages that wait for compression. */
export const compressionQueueBytesMax = 64 * MIB;
/** Fetched responses that are compressed at the same time; more are sent uncompressed. */
export const responsesCompressedAtOnceMax = 32;
/**
 * Fetched content up to this size is compressed synchronously. A page takes about 0.1 ms then, and
 * handing it to the thread pool costs more.
 */
export const compressSyncBytesMax = { zstd: 64 * KIB, br: 16 * KIB, gzip: 32 * KIB } as const;
/** Fetched content that was sent more than once, with its compressed forms. */
export const compressedResponsesBytesMax = 32 * MIB;
/** The window of a compressor of fetched content as a power of two: 512 KiB. */
export const compressWindowLog = 19;
/** How long a compressor of fetched content may hold back what the source has sent. */
export const compressFlushMs = 20;
