const KIB = 1024;
const MIB = 1024 * KIB;

/** How often running requests are checked for their time-outs. */
export const requestCheckMs = 1_000;
/** How long a client may take for the TLS handshake. */
export const tlsHandshakeTimeoutMs = 10_000;
/** Requests that a client may send before it has read the answers to earlier ones. */
export const pipelinedRequestsMax = 100;
/** Content of an answer that is passed to TLS at a time. */
export const tlsWriteBytes = 256 * KIB;
/** The size of both buffers of a file that is many times larger. */
export const fileLargeChunkBytes = MIB;
/** All large buffers in use; further files have buffers of the usual size. */
export const fileLargeBuffersBytesMax = 64 * MIB;
/** Large buffers that are kept for the next file. */
export const fileSpareBuffersMax = 8;
/** All buffers in use; further files have buffers of the scarce size. */
export const fileBuffersBytesMax = 128 * MIB;
export const fileScarceChunkBytes = 16 * KIB;
/** How long a websocket to a source may be silent in both directions. */
export const tunnelIdleMs = 600_000;
/** How often that is checked. */
export const tunnelCheckMs = 60_000;
/** Content of a source that refuses a websocket, and how long it may take to arrive. */
export const refusedTunnelBytesMax = 64 * KIB;
export const refusedTunnelMs = 10_000;
