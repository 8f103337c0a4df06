const MIB = 1024 * 1024;

/** Unsent bytes to a client, after which its websocket is closed with 1013. */
export const socketBufferedBytesMax = 4 * MIB;
/** How long a client may take for its Close frame. */
export const socketCloseMs = 5_000;
/** Pings of a client between two of the server. */
export const socketPingsMax = 1_000;
/** Frames of one message, and pieces of an incomplete frame that are held. */
export const socketFragmentsMax = 4_096;
export const socketPiecesMax = 16_384;
/** Characters, as JSON, of the id that each packet of a subscription repeats. */
export const subscriptionIdCharactersMax = 256;
/** Unsent bytes to a client, after which its further changes wait in the log. */
export const subscriptionUnsentBytesMax = MIB;
