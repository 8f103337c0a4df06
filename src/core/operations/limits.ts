import { KIB, MIB } from '../values/units.ts';

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

/** Days that an answer of breadcrumb.visits or visit.summary covers. */
export const visitDaysMax = 3_660;
