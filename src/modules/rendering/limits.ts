const KIB = 1024;
const MIB = 1024 * KIB;

/** A generic page that the server renders, and a page that it has rendered. */
export const pageTextBytesMax = 4 * MIB;
/** How long the rendering of one page may take, its sanitizing included. */
export const renderMsMax = 5_000;
/** How long the thread that renders may take to start. */
export const threadStartMsMax = 60_000;
/** After this time without work, the thread ends and frees its memory. */
export const threadIdleMs = 600_000;
/** The heap of the thread that renders, in MiB. */
export const threadHeapMibMax = 512;
/** Pages that wait for the thread, and how long; further visitors get 503. */
export const rendersWaitingMax = 100;
export const renderWaitMs = 30_000;
/** Memory of rendered pages. */
export const renderedPagesBytesMax = 32 * MIB;
/** How long the cache keeps a page that shows the current time, or a failure. */
export const shortLivedMs = 10_000;
/**
 * Changes of the log that are read to find the tables with changed rows; after more changes, all
 * tables count as changed.
 */
export const changesReadMax = 1_000;
export const changeBytesReadMax = 256 * KIB;
