/** Operations of one batch. */
export const batchOperationsMax = 10_000;
