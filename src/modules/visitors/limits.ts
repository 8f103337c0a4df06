const KIB = 1024;
const MIB = 1024 * KIB;

/** Characters of a signed-in user's name, and roles of one user. */
export const userNameCharactersMax = 256;
export const userRolesMax = 256;
/** A user's token (RFC 7519), and verified tokens in memory. */
export const jwtCharactersMax = 8 * KIB;
export const jwtRememberedMax = 4_096;
/** How long a verified token is valid without verification: its key may have been withdrawn. */
export const jwtTrustMs = 300_000;
/** How far the clock of a token's issuer may differ. */
export const jwtClockToleranceSeconds = 30;
/** The most keys that the server tries for a token that does not name its key. */
export const jwtKeysTriedMax = 8;
/** How long fetching a key set (RFC 7517 §5) may take. */
export const jwksTimeoutMs = 5_000;
/** Keys are fetched again at this age … */
export const jwksFreshMs = 600_000;
/** … for a token with an unknown key, or after a failure, no sooner than after this time … */
export const jwksRetryMs = 30_000;
/** … and are not used beyond this age if they cannot be fetched. */
export const jwksStaleMs = 86_400_000;
/** The largest geo database, and the most addresses with a location in memory. */
export const geoDatabaseBytesMax = 512 * MIB;
export const locationsRememberedMax = 4_096;
/** How long a loaded file is used before the disk is checked for a change. */
export const loadedFileTrustMs = 1_000;
/** Accept-Language fields whose result is in memory, and the longest of them. */
export const languagesRememberedMax = 1_024;
export const languageFieldCharactersMax = 256;
/** User-Agents with client hints whose device is in memory. */
export const devicesRememberedMax = 4_096;
/** Characters of a User-Agent or client hint that are read. */
export const userAgentCharactersMax = 512;
/**
 * The number of different seeds for percentages. It is small, so that a seed does not identify a
 * visitor.
 */
export const visitorSeeds = 2 ** 20;
/** Characters of a Referer that are read for its host, and referring hosts in memory. */
export const refererCharactersMax = 2_048;
export const referersRememberedMax = 2_048;
/** Characters of the host of a Referer, and of the path of a page, that counts of visits have. */
export const referringHostCharactersMax = 64;
export const countedPathCharactersMax = 512;
/** Pages, and names of their dimensions, that are counted before they are summed. */
export const talliedNamesMax = 20_000;
/** Answers between two writes whose visits a process counts one by one … */
export const requestsCountedMax = 2_000;
/** … and, above that, how many answers one counted visit stands for. */
export const sampledRequests = 16;
/** Requests that wait to be counted together. */
export const waitingRequestsMax = 128;
/** The time from which on an answer counts as slow. */
export const slowAnswerMs = 1_000;
/** Characters of the longest field whose result is in memory for counts of visits. */
export const rememberedCharactersMax = 512;
