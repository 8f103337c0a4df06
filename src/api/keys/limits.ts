/** Wrong keys that one address may send in a minute. */
export const wrongKeysPerMinuteMax = 20;
/** Addresses whose wrong keys are counted at the same time. */
export const wrongKeyAddressesMax = 10_000;
/** How long a session lasts after its sign-in. */
export const sessionMs = 12 * 3_600_000;
/** Open sessions of one key: another one ends the oldest. */
export const sessionsPerKeyMax = 20;
/** Sessions that a node with a centre has beside its log: another one ends the oldest. */
export const localSessionsMax = 200;
/** Keys whose rates are measured at the same time. */
export const keyRatesRemembered = 10_000;
