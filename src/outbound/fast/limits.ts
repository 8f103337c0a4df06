/** Connections that are written to together: more would make the first of them wait. */
export const corkedConnectionsMax = 16;
/** How long a plain connection may be idle. */
export const outboundIdleSeconds = 4;
/** How much earlier it is closed than the Keep-Alive field of the source says. */
export const outboundIdleMarginSeconds = 2;
/** How often idle connections are checked. */
export const outboundCheckMs = 1_000;
/** How long requests to an origin use undici after a response that was not plain. */
export const outboundNotPlainMs = 60_000;
/** Origins that are remembered for that. */
export const outboundNotPlainOriginsMax = 10_000;
