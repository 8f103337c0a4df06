const KIB = 1024;

/** The wait before a further attempt to open an access log file that cannot be written. */
export const logFileRetryMs = 1_000;

/** Bytes of a message to syslog: receivers need not take more than 2 KiB (RFC 5426 §3.2). */
export const syslogMessageBytesMax = 8 * KIB;

/** Bytes of them for what comes before the text. */
export const syslogHeadBytesMax = 384;

/** Characters of each text of a client, in a line that is too long for its destination. */
export const shortTextCharactersMax = 240;

/** How often the server looks whether an access log file has to be rotated. */
export const logRotationCheckMs = 1_000;

/** Bytes of lines that may wait for an access log file, before further ones are dropped. */
export const logFileWaitingBytesMax = 1024 * KIB;

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
/** How often the time series gets the counts of the time since. */
export const seriesSampleMs = 60_000;
/** The distances of points of the time series, and how many of each it keeps. */
export const seriesTiers = [
  { stepMs: 60_000, pointsMax: 180 },
  { stepMs: 900_000, pointsMax: 288 },
  { stepMs: 3_600_000, pointsMax: 744 },
] as const;
/** Readers of the live access log of a process. */
export const liveReadersMax = 32;
/** Unread lines of the live access log that the server keeps for a reader. */
export const liveRowsMax = 1_000;
/** Clients of a process that watch the state (server.subscribe). */
export const stateReadersMax = 64;
/** How often a process compares the state while a client watches it. */
export const stateCompareMs = 1_000;
/** How often a process sends its lines to the others that have readers. */
export const liveSendMs = 200;
/** Messages with lines that a process may not have read yet; the leader drops further ones. */
export const liveMessagesUnreadMax = 4;
