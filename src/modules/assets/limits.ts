const HOUR_MS = 3_600_000;

/** How long the server keeps the beginning of an interrupted upload. */
export const interruptedUploadMs = 24 * HOUR_MS;

/** How often files are removed that no asset refers to, and assets that are read at once. */
export const keepEveryMs = HOUR_MS;

/** The widths in which pictures are made smaller: a stranger can ask for no other ones. */
export const variantWidths = [160, 320, 480, 640, 800, 960, 1280, 1600, 1920, 2560] as const;
