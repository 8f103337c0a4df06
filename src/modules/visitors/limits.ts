/** Characters of a signed-in user's name, and roles of one user. */
export const userNameCharactersMax = 256;
export const userRolesMax = 256;

/** Accept-Language fields whose result is in memory, and the longest of them. */
export const languagesRememberedMax = 1_024;
export const languageFieldCharactersMax = 256;
/** User-Agents with client hints whose device is in memory. */
export const devicesRememberedMax = 4_096;
/** Characters of a User-Agent or client hint that are read. */
export const userAgentCharactersMax = 512;
