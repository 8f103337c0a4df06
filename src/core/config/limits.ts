const MIB = 1024 * 1024;

/** How long the ini file must be unchanged before the server reads it. */
export const configSettleMs = 100;
/** How often the server looks whether the ini file is still being written, 10 s in all. */
export const configSettleRoundsMax = 100;
/** Connections of a process; also the highest value of `connections_per_address`. */
export const connectionsMax = 10_000;
/** The highest value of `outbox_entries`. */
export const outboxEntriesLimit = 1_000_000_000;
/** The highest rate of a key, in operations a second. */
export const keyRateMax = 1_000_000;
export const configFileBytesMax = MIB;
/** The files of `[server] include`, and their bytes in all. */
export const includedFilesMax = 1_000;
export const includedBytesMax = 16 * MIB;
export const tableSchemaBytesMax = MIB;
/** A set of keys (RFC 7517 §5). */
export const jwksBytesMax = MIB;
/** Header fields that a mount, a rule or a hook may add. */
export const customHeadersMax = 32;
/** A PEM file: a certificate with its chain, or a key. */
export const certificateBytesMax = MIB;
export const rsaBitsMin = 2_048;
/** How long before the end of a certificate the server begins to log a warning. */
export const certificateWarnMs = 14 * 86_400_000;
/** How many periods of `configSettleMs` with changes pass before a change is reported anyway. */
export const watchRoundsMax = 20;
/** The name of a node. */
export const nodeNameCharactersMax = 253;
/** A file of redirects, such as `_redirects`. */
export const redirectFileBytesMax = 16 * MIB;
/** A file of header fields, such as `_headers`, and the paths in it. */
export const headerFileBytesMax = MIB;
export const headerBlocksMax = 1_000;
/** Mistakes of such a file that are named. */
export const siteFileMistakesMax = 20;
/** The largest number of requests, and of requests at once, in a rate. */
export const rateCountMax = 1_000_000_000;
export const rateBurstMax = 1_000_000;
export const tsigKeyFileBytesMax = 16 * 1024;
