const KIB = 1024;

/** The longest head of a request that the fast path answers. */
export const fastHeadBytesMax = 8 * KIB;
