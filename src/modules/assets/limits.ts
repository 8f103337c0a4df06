const HOUR_MS = 3_600_000;
const MIB = 1024 * 1024;

/** The name of an asset, in bytes of UTF-8. */
export const assetNameBytesMax = 255;
/** Uploads that a process receives at the same time. */
export const uploadsAtOnceMax = 32;
/** Further uploads that wait for a place, and how long. */
export const uploadsWaitingMax = 64;
export const uploadWaitMs = 10_000;
/** How long the server keeps the beginning of an interrupted upload. */
export const interruptedUploadMs = 24 * HOUR_MS;
/** Interrupted uploads that the server keeps; a further one replaces one of the key with most. */
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
/** The widths in which pictures are made smaller: a stranger can ask for no other ones. */
export const variantWidths = [160, 320, 480, 640, 800, 960, 1280, 1600, 1920, 2560] as const;
/** A picture with more pixels has no variants: a small file can unpack to gigabytes. */
export const variantPixelsMax = 64_000_000;
/** A picture with a longer side has no variants: the work on one row grows with it. */
export const variantSideMax = 65_535;
/** A picture that takes more bytes of memory to decode has no variants. */
export const variantUnpackedBytesMax = 256 * MIB;
/**
 * The memory of the process that makes pictures, which ends with more: enough for the decoder, the
 * encoder and the process itself.
 */
export const pictureProcessBytesMax = 768 * MIB;
/** How long that process stays without a picture. */
export const pictureProcessIdleMs = 60_000;
/** A longer file has no variants. */
export const variantSourceBytesMax = 64 * MIB;
/** Seconds that a variant may take. */
export const variantSecondsMax = 20;
/** Variants that wait for their turn, and how long; otherwise the whole picture is sent. */
export const variantsWaitingMax = 64;
export const variantWaitMs = 5_000;
/** Pictures whose sizes, or failures, a process keeps in memory. */
export const knownPicturesMax = 10_000;
/** The share of its room that the folder of variants is reduced to when it is full. */
export const variantsKeptShare = 0.9;
/** How long a visitor waits for a file that this node gets from its centre. */
export const missingFileWaitMs = 10_000;
/** How long the centre may be silent while it sends a file. */
export const centreSilentMs = 30_000;
