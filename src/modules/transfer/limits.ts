import { contentBytesMax, ruleBytesMax } from '../rules/operations/limits.ts';

const MIB = 1024 * 1024;

/** Bytes of an import over HTTP that are read and written in the thread that serves pages. */
export const importInlineBytesMax = 16_384;

/** Refused lines that the failure of an import names one by one. */
export const refusalsNamedMax = 20;

/**
 * Values in the JSON of a line, as many as in that of an operation that writes: JSON.parse takes a
 * hundred times the memory of a text that is nothing but short values.
 */
export const importLineValuesMax = 262_144;
/** Rows that an import writes in one transaction. */
export const importRowsMax = 100_000;
/** A line of an import: in JSON, each character of its content can take six. */
export const importLineBytesMax = 6 * contentBytesMax + 2 * ruleBytesMax;
/** About how many bytes of an import are read at once. */
export const importBlockBytes = MIB;
/** Bytes that are read ahead while earlier lines are being written. */
export const importAheadBytesMax = 32 * MIB;
/** Refused lines, and lines with other problems, that the report of an import lists. */
export const refusalsKeptMax = 1_000;
/** Imported page rules that an import over HTTP checks for what hides them. */
export const shadowsCheckedMax = 1_000;
