/** Limits of the endpoint for automated tools, each with its unit in its name. */

/** Characters of the name of a client with its version, and of the id of a conversation. */
export const clientCharactersMax = 64;
export const conversationCharactersMax = 64;
/** How long a client may use one session, in milliseconds: 30 days. It then starts another one. */
export const sessionMsMax = 30 * 86_400_000;
/** Characters of the result of a tool, and of a resource: a model reads all of them. */
export const resultCharactersMax = 400_000;
/** Resources in one page of a list. */
export const resourcesPerPage = 100;
/** Characters of the address of a resource, and of the cursor of a list. */
export const resourceUriCharactersMax = 1_024;
