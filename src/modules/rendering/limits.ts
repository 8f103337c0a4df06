import { MIB } from '../../core/values/units.ts';

/** A generic page that the server renders, and a page that it has rendered. */
export const pageTextBytesMax = 4 * MIB;
