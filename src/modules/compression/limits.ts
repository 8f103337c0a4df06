import { KIB } from '../../core/values/units.ts';

/** Content below this size is not compressed: it fits into one packet anyway. */
export const compressBytesMin = KIB;
