/** Characters of a name, and bytes of a password, that a request may send. */
export const loginNameCharactersMax = 256;
export const passwordBytesMax = 1_024;
