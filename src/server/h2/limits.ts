const KIB = 1024;
const MIB = 1024 * KIB;

/** Open requests of one connection, and of all connections. */
export const http2ConcurrentStreamsMax = 100;
export const http2StreamsMax = 10_000;
/** Cookie fields of a request, besides its other fields. */
export const http2CookieFieldsMax = 200;
/** Bytes of a request's content that may arrive before the server reads them. */
export const http2StreamWindowBytes = 64 * KIB;
/** Bytes of an answer that are written to a stream at once. */
export const http2WriteBytes = 64 * KIB;
/**
 * Memory of a connection for its streams, in 10^6 bytes. More than all streams hold at once,
 * because Node never subtracts the bytes that were written to a stream before its reset.
 */
export const http2SessionMegabytesMax = 128;
/** After this many bytes that Node never subtracts, the connection accepts no further request. */
export const http2LostBytesMax = 64 * MIB;
/** Invalid frames, and streams over the limit, after which the server closes a connection. */
export const http2InvalidFramesMax = 100;
export const http2RejectedStreamsMax = 100;
/** Entries of a SETTINGS frame. */
export const http2SettingsMax = 32;
/** In each period of this length, a client may reset this many requests … */
export const http2CountingMs = 10_000;
export const http2ResetsMax = 200;
/** … and send this many PING and SETTINGS frames. */
export const http2IdleFramesMax = 100;
/** The interval between two checks of all connections for timeouts. */
export const http2CheckMs = 5_000;
/** More bytes between two checks than the answers to PING and SETTINGS alone. */
export const http2ControlBytesMax = 2 * KIB;
/** At a stop, the server waits for clients whose last answer ended within this time. */
export const http2LeaveMs = 10_000;
