/** Keys that a breadcrumb may lead over. */
export const breadcrumbHopsMax = 8;
