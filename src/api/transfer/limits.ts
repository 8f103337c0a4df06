/** Bytes of an import over HTTP that are read and written in the thread that serves pages. */
export const importInlineBytesMax = 65_536;

/** Refused lines that the failure of an import names one by one. */
export const refusalsNamedMax = 20;
