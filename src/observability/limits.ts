const KIB = 1024;

/** The wait before a further attempt to open an access log file that cannot be written. */
export const logFileRetryMs = 1_000;

/** Permissions of an access log file: its owner writes, its group reads. */
export const logFileMode = 0o640;

/** How deep the causes of an error are followed for its reason. */
export const causesFollowedMax = 5;
/** The shortest time between two log lines about the same limit. */
export const limitLogMs = 60_000;
/** Characters of lines that the access log buffers before it writes them. */
export const accessBufferCharactersMax = 16 * KIB;
/** The longest time that a line of the access log is buffered. */
export const accessFlushMs = 200;
