/** Wrong keys that one address may send in a minute. */
export const wrongKeysPerMinuteMax = 20;
/** How long a session lasts after its sign-in. */
export const sessionMs = 12 * 3_600_000;
/** Open sessions of one key: another one ends the oldest. */
export const sessionsPerKeyMax = 20;
/** The most sessions of a node with a centre, outside of its log; another one ends the oldest. */
export const localSessionsMax = 200;
/** How often a process writes the last use of keys at most. */
export const keyUsesWriteMs = 60_000;
/** Sessions of visitors in one answer of login.list. */
export const loginsListedMax = 1_000;
/** Origins and paths to which one key is bound. */
export const boundOriginsMax = 16;
export const boundPathsMax = 64;
