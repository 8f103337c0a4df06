/**
 * Pages of the data file that are looked at before it is opened: all of them up to 4 MiB, of a
 * longer file the ones that lead to the others.
 */
export const openCheckPagesMax = 1_000;
/** How often they are looked at again while another process writes. */
export const openCheckAttemptsMax = 5;
