/** Wrong keys that one address may send in a minute. */
export const wrongKeysPerMinuteMax = 20;
/** Addresses whose wrong keys are counted at the same time. */
export const wrongKeyAddressesMax = 10_000;
/** Keys whose rates are measured at the same time. */
export const keyRatesRemembered = 10_000;
