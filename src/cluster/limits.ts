const MIB = 1024 * 1024;

/** How long a connection to one NATS server may take to be made. */
export const connectMsMax = 2_000;
/** The pause after all servers have refused a connection, at first and at most. */
export const reconnectMs = 100;
export const reconnectMsMax = 1_000;
/** A server that leaves two pings at this interval without an answer is given up. */
export const pingMs = 1_000;
/** How long one request to a server may take. */
export const requestMsMax = 2_000;
/** After this many requests in a row without an answer, the next server gets a connection. */
export const unansweredRequestsMax = 3;
/**
 * How long an append is repeated until its outcome is known: a new leader of the stream is elected
 * 4 to 9 s after the last sign of the former one.
 */
export const appendMsMax = 14_000;
/** The pause before an append is repeated. */
export const appendAgainMs = 50;
/** How long a node tries to get the end of the stream. */
export const endMsMax = 5_000;
/** The bytes of one message, if the server allows more (`max_payload`, by default 1 MiB) … */
export const messageBytesMax = MIB;
/** … and the part of it that the data may be; header fields take the rest. */
export const messageDataShare = 0.75;
/** The messages of one entry, as JetStream allows in an atomic batch … */
export const entryMessagesMax = 1_000;
/** … and its bytes, which the servers have in memory several times. */
export const entryBytesMax = 256 * MIB;
/** Of the messages of a batch, each one after this many waits for an answer. */
export const batchWindow = 16;
/** The messages, and their bytes, that a server sends before the node asks for more. */
export const pullMessagesMax = 1_000;
export const pullBytesMax = 8 * MIB;
/** How long a server holds a request for more messages. */
export const pullMs = 30_000;
/** How often a server says that there are no new messages … */
export const heartbeatMs = 500;
/** … and how long it may be silent before the node turns to another one. */
export const silenceMsMax = 1_500;
/** How long no message comes before the node asks the leader whether there are any. */
export const idleCheckMs = 4_000;
/** The pause before the node reads the stream again after an error. */
export const readAgainMs = 200;
/** When a server removes a reader that has not asked for messages. */
export const readerUnusedMs = 15_000;
/**
 * How long the stream may seem shorter than what this node has, because a former leader answers,
 * before the node gives up.
 */
export const shorterMsMax = 20_000;
/** A leader without a sign of most replicas for this long may no longer be the leader. */
export const replicaContactMsMax = 3_000;
