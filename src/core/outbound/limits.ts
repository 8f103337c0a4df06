/** How long a connection is silent before the system checks whether the other end still exists. */
export const tcpKeepAliveMs = 60_000;
/** Informational responses (1xx) of a source before the final one. */
export const informationalMax = 16;

/** The timeout of a DNS query, and the number of queries to each server. */
export const nameTryMs = 1_000;
export const nameTriesMax = 2;

/** Names whose addresses are cached, and the shortest and longest time that they are cached. */
export const namesRememberedMax = 10_000;

export const apiSocketSilentMs = 15_000;
