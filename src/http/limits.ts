/** Of a method: longer than any in the registry (RFC 9110 §16.1). */
export const methodBytesMax = 32;
