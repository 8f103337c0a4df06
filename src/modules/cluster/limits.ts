const MIB = 1024 * 1024;

/** How long a connection to one NATS server may take to be made. */
export const connectMsMax = 2_000;
/** The pause after all servers have refused a connection, at first and at most. */
export const natsRetryMs = 100;
export const natsRetryMsMax = 1_000;
/** The interval of pings; the client closes the connection after two pings without an answer. */
export const pingMs = 1_000;
/** How long one request to a server may take. */
export const requestMsMax = 2_000;
/** How long a reader waits at first for an answer; each further time, twice as long. */
export const readerRequestMs = 500;
/** How long one attempt to append waits for its answer … */
export const appendRequestMs = 1_000;
/** … and 1 ms longer for each of these bytes of the entry. */
export const appendBytesPerMs = 10_000;
/** After this many requests in a row without an answer, the next server gets a connection. */
export const unansweredRequestsMax = 6;
/**
 * How long a node repeats an append until its outcome is known: the servers elect a new leader of
 * the stream 4 to 9 s after the last message of the former one.
 */
export const appendMsMax = 14_000;
/** The pause before an append is repeated. */
export const appendAgainMs = 50;
/** How long a node tries to get the end of the stream: also while the servers elect a leader. */
export const endMsMax = appendMsMax;
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
/** The messages, and their bytes, that a server sends for one request. */
export const fetchMessagesMax = 1_000;
export const fetchBytesMax = 8 * MIB;
/** The pauses after which a request for messages is repeated, if no answer begins. */
export const fetchHedgeMs = [30, 60, 90, 120, 150, 180, 210] as const;
/** How often a node looks for new messages without a wake-up by another node. */
export const pollMs = 500;
/** The pause before messages that others have are fetched again, at first and at most … */
export const fetchAgainMs = 1;
export const fetchAgainMsMax = 32;
/** … and how long a server may lack them. */
export const heldBackMsMax = 2_000;
/** After this time without a message, the node asks the leader whether there are any. */
export const idleCheckMs = 4_000;
/** The pause before the node reads the stream again after an error. */
export const readAgainMs = 200;
/**
 * How long the stream may seem shorter than what this node has, because a former leader answers,
 * before the node gives up.
 */
export const shorterMsMax = 20_000;
/**
 * After this number of wrong messages in a row, from one server after the other, the node gives up.
 */
export const strayMessagesMax = 12;
/** A leader without a sign of most replicas for this long may no longer be the leader. */
export const replicaContactMsMax = 3_000;
/** How long JetStream looks for duplicates, as by default. */
export const duplicatesMs = 120_000;
/**
 * The bytes of a part of a file that nodes share. It is a part of the layout, because the subject
 * of a part has its number; the servers have to take messages of this size (`max_payload`).
 */
export const filePartBytes = 512 * 1024;
/** The parts of a file that are stored or fetched at the same time. */
export const filePartsAtOnce = 4;
/** How long a server may take to store a part. */
export const filePartRequestMs = 5_000;
