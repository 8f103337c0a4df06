const KIB = 1024;

/** How long a person may take to sign in at the provider. */
export const signInMs = 600_000;
/** Started sign-ins of a browser at the same time: their cookies fit into a request. */
export const startedSignInsMax = 4;
/** How often a browser may come back from the provider within a minute: more is a loop. */
export const signInsPerMinuteMax = 5;
/** Characters of a way back, which is in a cookie; a longer one leads to the front page. */
export const wayBackCharactersMax = 1_500;
/** Sessions of one person, and of all; the oldest ones end. */
export const sessionsPerPersonMax = 20;
export const loginSessionsMax = 100_000;
/** Sessions in the memory of a process, so that not each request reads and hashes again. */
export const sessionsRememberedMax = 2_000;
/** Characters of an ID token that is stored for the sign-out at the provider. */
export const idTokenCharactersMax = 8 * KIB;
/** How long a key seals cookies of started sign-ins; it opens them for as long again. */
export const sealingKeyMs = 86_400_000;
/** How long an answer of the provider may take, and how long it may be. */
export const providerTimeoutMs = 5_000;
export const providerAnswerBytesMax = 1024 * KIB;
/** When the addresses of the provider are read again, and how soon after a failure. */
export const discoveryFreshMs = 3_600_000;
export const discoveryRetryMs = 5_000;
/** How far the clock of the provider may differ. */
export const providerClockToleranceSeconds = 30;
/** Requests to the provider at the same time; as many further sign-ins wait. */
export const providerRequestsMax = 64;
/** The content of a request by which the provider ends sessions. */
export const logoutBytesMax = 16 * KIB;
/** The age of a logout token. */
export const logoutTokenSeconds = 300;
/** How long the console may take to use a sign-in. */
export const consoleGrantMs = 60_000;
/** Cookies of one name that are read: another page of the domain may have set a second one. */
export const cookiesTriedMax = 4;
/** The least time between two log lines about the same trouble. */
export const troubleLoggedMs = 5_000;
