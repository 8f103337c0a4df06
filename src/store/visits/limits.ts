/** Branches, countries, devices and referring hosts of a breadcrumb and day, of each at most. */
export const visitNamesMax = 100;
/** Breadcrumbs that have counts of their own on one day; visits of others are counted together. */
export const visitKeysPerDayMax = 10_000;
/** Entries that one transaction deletes. */
export const visitDeletesMax = 5_000;
/** Entries that a listing of all breadcrumbs reads before it lets other work run. */
export const visitRowsReadMax = 1_000;
