/** Limits of the port and of the operations on it, each with its unit in its name. */

const KIB = 1024;
const MIB = 1024 * KIB;

/**
 * Values in the JSON of an operation, those in arrays and objects included: for operations that
 * write, and for those that only read.
 */
export const jsonValuesMax = 262_144;
export const readValuesMax = 10_000;
/** Bytes of an HTML page that gets the bar of a preview. */
export const previewBytesMax = 16 * MIB;
/** Members of a form: as many as fit into a query. */
export const formPairsMax = 4_096;
/** The name of an operation, and the id, in a websocket message, as JSON. */
export const operationNameBytesMax = 256;
export const messageIdBytesMax = 4_096;

/**
 * File descriptors that a process keeps for itself, and those that a connection needs: its own, and
 * that of a file or of a connection to a source.
 */
export const reservedDescriptors = 64;
export const connectionDescriptors = 2;

/**
 * Subscriptions of all websockets of a process; of callers without a key, of one address without a
 * key; and of one websocket. A key, too, holds no more than is left for others.
 */
export const subscriptionsMax = 1_000;
export const subscriptionsWithoutKeyMax = 750;
export const subscriptionsPerAddressMax = 128;
export const socketSubscriptionsMax = 64;

/**
 * Bytes of unanswered requests in memory, limited in the same way: bodies of operations and
 * messages of websockets, complete or not. A piece costs a little more than its bytes.
 */
export const requestsHeldBytesMax = 256 * MIB;
export const requestsHeldWithoutKeyBytesMax = 64 * MIB;
export const requestsHeldPerAddressBytesMax = 8 * MIB;
export const heldPieceBytes = 256;

/** Bytes of unread answers in memory, limited in the same way. */
export const unreadBytesMax = 256 * MIB;
export const unreadWithoutKeyBytesMax = 192 * MIB;
export const unreadPerAddressBytesMax = 96 * MIB;
/** Shorter content does not count: the limit of connections bounds it. */
export const unreadPieceBytesMin = 64 * KIB;

/** Websockets to sources, of one process and of one address. */
export const tunnelsMax = 4_096;
export const tunnelsPerAddressMax = 1_024;

/** How often open answers and websockets are ended whose visitors are no longer signed in … */
export const signedInCheckMs = 2_000;

/** The body of an operation that writes. */
export const operationBodyBytesMax = 16 * MIB;
/** A name of a form or query, including its dots. */
export const memberNameCharactersMax = 1_024;
export const headersTimeoutMs = 10_000;
/** How long a proxy may take for the header of the PROXY protocol. */
export const proxyHeaderMs = 5_000;
export const keepAliveTimeoutMs = 75_000;
/** The longest time that an answer may stay unread, or a tunnel or websocket silent. */
export const stalledMs = 120_000;
/** The least rate at which a client sends content or reads an answer. */
export const leastRate = { bytesPerSecond: 256, windowMs: 30_000 };
/** Bytes of unrequested content that are read and discarded to keep a connection open. */
export const unreadBodyBytesMax = 64 * KIB;
/** The time that a connection stays open after its last answer, for the client to read it. */
export const lingerMs = 1_000;
/** Prepared answers in memory: of all URLs together, and of one URL. */
export const preparedBytesMax = 8 * MIB;
export const preparedVariantsMax = 8;
/** URLs that have failed once: the answer is prepared with the next request. */
export const failedUrlsMax = 500;
/** Up to this length, copying content behind its head takes less time than a second write. */
export const preparedTextBytesMax = 16 * KIB;
/** Public answers of operations in memory, with their compressed forms. */
export const publicAnswersBytesMax = 64 * MIB;
/** The overhead of a public answer. */
export const publicAnswerBytes = 1_024;
/** The longest time that the head of an answer waits for streamed content to begin. */
export const answerHeadHeldMs = 5;
/** Characters of a malformed request line in the access log. */
export const refusedLineCharactersMax = 200;
/** The interval between two checks of certificates for their expiry. */
export const certificateCheckMs = 12 * 3_600_000;
/** How long a key of session tickets is in use. */
export const ticketKeyMs = 12 * 3_600_000;

/** Contexts of certificates on demand in memory, and how soon one is read again. */
export const onDemandContextsMax = 1_000;
export const onDemandCheckMs = 60_000;
/** How often a handshake looks for its certificate, and how many handshakes wait. */
export const onDemandLookMs = 200;
export const onDemandWaitingMax = 256;
/** How often the use of a certificate on demand is noted. */
export const onDemandUseMs = 6 * 3_600_000;
/** Certificates on demand that server.status shows. */
export const onDemandShownMax = 100;
