/** Keys that a breadcrumb may lead over. */
export const breadcrumbHopsMax = 8;
/** Branches of a `when`, and values of one of its conditions. */
export const breadcrumbBranchesMax = 1_000;
export const conditionValuesMax = 1_000;
/** The longest time that counts of visits are only in memory. */
export const visitFlushMs = 5_000;
/** Breadcrumbs with counts in memory that are not written yet. */
export const visitKeysBufferedMax = 10_000;
/** The most breadcrumbs with counts in one transaction. */
export const visitBatchKeysMax = 500;
/** Characters of a Referer that are read for its host. */
export const visitRefererCharactersMax = 2_048;
