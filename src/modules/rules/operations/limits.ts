import { MIB } from '../../../core/values/units.ts';

export const contentBytesMax = 16 * MIB;

/** All fields of a rule except its content, including `_unknowns_` and `enginecomments`. */
export const ruleBytesMax = 4 * MIB;
