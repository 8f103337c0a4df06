/** How long the access log waits before it tries again to open a file that cannot be written. */
export const logFileRetryMs = 1_000;

/** Permissions of an access log file: its owner writes, its group reads. */
export const logFileMode = 0o640;

/** How deep the causes of an error are followed for its reason. */
export const causesFollowedMax = 5;
