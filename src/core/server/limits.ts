import { KIB, MIB } from '../values/units.ts';

/** Limits of the port and of the operations on it, each with its unit in its name. */

/**
 * Values in the JSON of an operation, those in arrays and objects included: for operations that
 * write, and for those that only read.
 */
export const jsonValuesMax = 262_144;
export const readValuesMax = 10_000;

/** Members of a form: as many as fit into a query. */
export const formPairsMax = 4_096;

export const heldPieceBytes = 256;

/** The body of an operation that writes. */
export const operationBodyBytesMax = 16 * MIB;

export const headersTimeoutMs = 10_000;

export const keepAliveTimeoutMs = 75_000;
/** The longest time that an answer may stay unread, or a tunnel or websocket silent. */
export const stalledMs = 120_000;
/** The least rate at which a client sends content or reads an answer. */
export const leastRate = { bytesPerSecond: 256, windowMs: 30_000 };
/** Bytes of unrequested content that are read and discarded to keep a connection open. */
export const unreadBodyBytesMax = 64 * KIB;
/** The time that a connection stays open after its last answer, for the client to read it. */
export const lingerMs = 1_000;

/** Up to this length, copying content behind its head takes less time than a second write. */
export const preparedTextBytesMax = 16 * KIB;
