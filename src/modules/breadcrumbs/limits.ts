/** Keys that a breadcrumb may lead over. */
export const breadcrumbHopsMax = 8;

/** Branches of a `when`, and values of one of its conditions. */
export const breadcrumbBranchesMax = 1_000;
export const conditionValuesMax = 1_000;
