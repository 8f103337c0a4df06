/** Characters of a value that a failure repeats. */
export const shownValueCharactersMax = 80;
