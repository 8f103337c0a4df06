const HOUR_MS = 3_600_000;
const MIB = 1024 * 1024;

/** The name of an asset, in bytes of UTF-8. */
export const assetNameBytesMax = 255;
/** Uploads that a process receives at the same time. */
export const uploadsAtOnceMax = 32;
/** How long the server keeps the beginning of an interrupted upload. */
export const interruptedUploadMs = 24 * HOUR_MS;
/** Interrupted uploads that the server keeps; a further one starts anew. */
export const interruptedUploadsMax = 64;
/** The first bytes of a file, by which the server knows images. */
export const signatureBytes = 64;
/** Small files of assets in memory. */
export const assetPagesBytesMax = 64 * MIB;
/** Bytes of a file that are hashed at once. */
export const hashedAtOnceBytes = 256 * 1024;
/** How often files are removed that no asset refers to, and assets that are read at once. */
export const keepEveryMs = HOUR_MS;
export const assetsAtOnce = 1_000;
