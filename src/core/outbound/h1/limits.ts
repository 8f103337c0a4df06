const KIB = 1024;

/** Connections that are written to together: more would make the first of them wait. */
export const corkedConnectionsMax = 16;
/** How long a connection of the client for GETs may be idle. */
export const outboundIdleSeconds = 4;
/** How much earlier it is closed than the Keep-Alive field of the source says. */
export const outboundIdleMarginSeconds = 2;
/** How often idle connections are checked. */
export const outboundCheckMs = 1_000;
/** The buffer that all connections without TLS are read into. */
export const outboundReadBytes = 64 * KIB;
/** Content of a request that waits for its connection. */
export const framedContentBytesMax = 64 * KIB;
