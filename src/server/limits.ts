/** Limits of the port and of the operations on it, each with its unit in its name. */

/**
 * Values of the JSON of an operation, those in arrays and objects included: of one that writes, and
 * of any other.
 */
export const jsonValuesMax = 262_144;
export const questionValuesMax = 10_000;
/** Members of a form: as many as a query has place for. */
export const formPairsMax = 4_096;
/** The name of an operation, and the id, in a message of a websocket, as JSON. */
export const operationNameBytesMax = 256;
export const messageIdBytesMax = 4_096;

/**
 * File descriptors of a process that are not for clients, and those that a connection takes: its
 * own, and that of a file, or of a connection to a source.
 */
export const reservedDescriptors = 64;
export const connectionDescriptors = 2;

const KIB = 1024;
const MIB = 1024 * KIB;

/**
 * Subscriptions of all websockets of a process; of those, what is there for callers without a key,
 * for one address without a key, and for one key; and those of one websocket.
 */
export const subscriptionsMax = 1_000;
export const subscriptionsWithoutKeyMax = 750;
export const subscriptionsPerAddressMax = 128;
export const subscriptionsPerKeyMax = 500;
export const socketSubscriptionsMax = 64;

/**
 * Bytes that a process holds of requests that are not answered yet, shared in the same way: bodies
 * of operations and messages of websockets, whole or not. A piece costs a little besides its bytes.
 */
export const requestsHeldBytesMax = 256 * MIB;
export const requestsHeldWithoutKeyBytesMax = 64 * MIB;
export const requestsHeldPerAddressBytesMax = 8 * MIB;
export const requestsHeldPerKeyBytesMax = 128 * MIB;
export const heldPieceBytes = 256;

/** Bytes that a process holds of answers that are not read yet, shared in the same way. */
export const unreadBytesMax = 256 * MIB;
export const unreadWithoutKeyBytesMax = 192 * MIB;
export const unreadPerAddressBytesMax = 96 * MIB;
export const unreadPerKeyBytesMax = 128 * MIB;
/** Content below this is not counted: connections have a limit of their own. */
export const unreadPieceBytesMin = 64 * KIB;

/** Websockets that are passed on to sources, of one process and of one address. */
export const tunnelsMax = 4_096;
export const tunnelsPerAddressMax = 1_024;
