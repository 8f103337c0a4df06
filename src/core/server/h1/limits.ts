const KIB = 1024;
const MIB = 1024 * KIB;

/** The interval between two checks of running requests for their timeouts. */
export const requestCheckMs = 1_000;
/** The longest time for a TLS handshake. */
export const tlsHandshakeTimeoutMs = 10_000;
/** Requests that a client may send before it has read the answers to earlier ones. */
export const pipelinedRequestsMax = 100;
/** Bytes of content that TLS gets at a time. */
export const tlsWriteBytes = 256 * KIB;
/** The size of both buffers for a file that is many times larger. */
export const fileLargeChunkBytes = MIB;
/** All large buffers in use; further files have buffers of the usual size. */
export const fileLargeBuffersBytesMax = 64 * MIB;
/** Free large buffers that stay in memory for the next file. */
export const fileSpareBuffersMax = 8;
/** All buffers in use; further files have buffers of the scarce size. */
export const fileBuffersBytesMax = 128 * MIB;
export const fileScarceChunkBytes = 16 * KIB;
/** The longest silence, in both directions, of a websocket to a source. */
export const tunnelIdleMs = 600_000;
/** The interval between two checks for that silence. */
export const tunnelCheckMs = 60_000;
/** Content of a source's refusal of a websocket, and the longest time for it to arrive. */
export const refusedTunnelBytesMax = 64 * KIB;
export const refusedTunnelMs = 10_000;
