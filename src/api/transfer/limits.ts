/** Bytes of an import over HTTP that are read and written in the thread that serves pages. */
export const importInlineBytesMax = 16_384;

/** Refused lines that the failure of an import names one by one. */
export const refusalsNamedMax = 20;

/**
 * Values in the JSON of a line, as many as in that of an operation that writes: JSON.parse takes a
 * hundred times the memory of a text that is nothing but short values.
 */
export const importLineValuesMax = 262_144;
