import { KIB } from './units.ts';

/** Limits of values that many folders use. Other limits are in the `limits.ts` of their folder. */

export const pathBytesMax = 4 * KIB;
export const originBytesMax = 512;
export const breadcrumbKeyCharactersMax = 512;
export const tableCharactersMax = 128;
export const keyNameCharactersMax = 128;
/** How deep a JSON value of a caller may nest. */
export const jsonDepthMax = 64;
/** Sources of one page rule, or of one proxy. */
export const fetchSourcesMax = 16;
/** Further sources that a request to a failing source may be sent to, and the weight of one. */
export const fetchRetriesMax = 15;
export const sourceWeightMax = 1_000;
/** The shortest and longest interval of health checks of a source. */
export const checkIntervalMin = '100ms';
export const checkIntervalMax = '1h';
