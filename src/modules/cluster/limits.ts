/** How long a connection to one NATS server may take to be made. */
export const connectMsMax = 2_000;

/** How long one request to a server may take. */
export const requestMsMax = 2_000;

/**
 * How long a node repeats an append until its outcome is known: the servers elect a new leader of
 * the stream 4 to 9 s after the last message of the former one.
 */
export const appendMsMax = 14_000;
/** The pause before an append is repeated. */
export const appendAgainMs = 50;

/** The pause before the node reads the stream again after an error. */
export const readAgainMs = 200;
