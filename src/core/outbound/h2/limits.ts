const MIB = 1024 * 1024;

/** Requests on one session before the client opens another, and sessions with one server. */
export const http2StreamsPerSession = 100;
export const http2SessionsMax = 16;
/** The window of a session: more than all windows of its streams, of 64 KiB each. */
export const http2SessionWindowBytes = 16 * MIB;
/** How long a session without requests stays open. */
export const http2IdleMs = 30_000;
