const KIB = 1024;
const MIB = 1024 * KIB;

/** Members of an enginedata that wait one by one; if there are more, their outer members wait. */
export const waitingMembersMax = 100;
/** Problems in the answer to a write. */
export const problemsMax = 100;
/** How long a request and its content may take to arrive. */
export const requestTimeoutMs = 60_000;
/** The body of an operation that only reads. */
export const readBodyBytesMax = 256 * KIB;
export const socketFrameBytesMax = 16 * MIB;
/** Requests of one websocket that are not answered yet. */
export const socketRequestsInFlightMax = 256;
/** How often the server sends a PING over a websocket. */
export const socketPingMs = 30_000;
export const vkCharactersMax = 256;
/** Characters of an unknown name that a message repeats. */
export const shownNameCharactersMax = 80;
export const listRowsDefault = 100;
export const listRowsMax = 1_000;
/** Characters of one page of a list; a page ends early instead of holding more. */
export const listCharactersMax = 8 * MIB;
/** A rule or a row of the log of this length takes twice the time of a short one to examine. */
export const ruleCharacters = 4 * KIB;
/** Large invalidates and imports that wait, and how long; they run one after the other. */
export const largeWritesWaitingMax = 4;
export const largeWriteWaitMs = 600_000;
/** Rows of a page of change.list. */
export const changesRowsMax = 200;
/** Rows of the log that one page of change.list examines. */
export const changesExaminedMax = 20_000;
/** Days that an answer of breadcrumb.visits or visit.summary covers. */
export const visitDaysMax = 3_660;
/** Breadcrumbs in an answer of breadcrumb.visits, and pages in one of visit.summary. */
export const visitedKeysDefault = 100;
export const visitedKeysMax = 1_000;
/** Attempts of a webhook that server.subscribe compares. */
export const watchedAttemptsMax = 100;
