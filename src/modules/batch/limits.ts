/** Operations of one batch. */
export const batchOperationsMax = 10_000;
/** Characters of the vk of a batch: that of an operation has its place in the batch behind it. */
export const batchVkCharactersMax = 240;
/** Page rules of a batch that are compared with the files of the site. */
export const batchRulesComparedMax = 1_000;
/** How many of them in one turn of the event loop. */
export const rulesComparedPerTurn = 20;
