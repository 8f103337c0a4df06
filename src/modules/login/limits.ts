/** How long an answer of the provider may take, and how long it may be. */
export const providerTimeoutMs = 5_000;

/** How far the clock of the provider may differ. */
export const providerClockToleranceSeconds = 30;
