const MIB = 1024 * 1024;

/** Unsent bytes to a client; with more, the server closes its websocket with 1013. */
export const socketBufferedBytesMax = 4 * MIB;
/** Bytes that wait for the end of a turn of the event loop, to be sent in one system call. */
export const corkedBytesMax = 64 * 1024;
/** The longest wait for a client's Close frame. */
export const socketCloseMs = 5_000;
/** Pings of a client between two pings of the server. */
export const socketPingsMax = 1_000;
/** Frames of one message, and stored pieces of an incomplete frame. */
export const socketFragmentsMax = 4_096;
export const socketPiecesMax = 16_384;
/** Characters, in JSON, of the id that each packet of a subscription repeats. */
export const subscriptionIdCharactersMax = 256;
/** Unsent bytes to a client; with more, further changes wait in the log. */
export const subscriptionUnsentBytesMax = MIB;
