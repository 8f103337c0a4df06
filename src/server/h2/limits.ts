const KIB = 1024;
const MIB = 1024 * KIB;

/** Requests that a client may have open on one connection, and all clients together. */
export const http2ConcurrentStreamsMax = 100;
export const http2StreamsMax = 10_000;
/** Fields of a request that its cookies may be split into, besides its other fields. */
export const http2CookieFieldsMax = 200;
/** Content of a request that may arrive before somebody has read it. */
export const http2StreamWindowBytes = 64 * KIB;
/** Content of an answer that is passed to a stream at a time. */
export const http2WriteBytes = 64 * KIB;
/**
 * Memory of a connection for its streams, in 10^6 bytes. It is more than all streams can hold at a
 * time, because Node never subtracts the bytes that were passed to a stream that was reset.
 */
export const http2SessionMegabytesMax = 128;
/** After this many such bytes, the connection accepts no further request. */
export const http2LostBytesMax = 64 * MIB;
/** Invalid frames, and streams over the limit, after which a connection is closed. */
export const http2InvalidFramesMax = 100;
export const http2RejectedStreamsMax = 100;
/** Entries of a SETTINGS frame. */
export const http2SettingsMax = 32;
/** In each period of this length, a client may reset so many requests … */
export const http2CountingMs = 10_000;
export const http2ResetsMax = 200;
/** … and send so many PING and SETTINGS frames. */
export const http2IdleFramesMax = 100;
/** How often connections are checked for time-outs. */
export const http2CheckMs = 5_000;
/** More than what answers to PING and SETTINGS alone send between two checks. */
export const http2ControlBytesMax = 2 * KIB;
/** At a stop, clients that got an answer within this time are given time to read it. */
export const http2LeaveMs = 10_000;
