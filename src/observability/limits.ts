const KIB = 1024;

/** How long the access log waits before it tries again to open a file that cannot be written. */
export const logFileRetryMs = 1_000;

/** Permissions of an access log file: its owner writes, its group reads. */
export const logFileMode = 0o640;

/** How deep the causes of an error are followed for its reason. */
export const causesFollowedMax = 5;
/** The shortest time between two log lines about the same limit. */
export const limitLogMs = 60_000;
/** Lines of the access log are held back until they have this many characters. */
export const accessHeldBackCharactersMax = 16 * KIB;
/** The longest time that a line of the access log is held back. */
export const accessFlushMs = 200;
