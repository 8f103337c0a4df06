const KIB = 1024;
const MIB = 1024 * KIB;

/** How long a connection is silent before the system checks whether the other end still exists. */
export const tcpKeepAliveMs = 60_000;
/** Informational responses (1xx) of a source before the final one. */
export const informationalMax = 16;
/** How long a response is awaited on a connection that can no longer be written to. */
export const answerBehindFailureMs = 100;
/** Connections of HTTP/1.1 of one process to one server at a time; further requests wait. */
export const outboundConnectionsMax = 1_024;
/** Content that arrived together with its header section, held until it is read. */
export const outboundUnreadBytesMax = 64 * KIB;
/** Bytes that are passed on before the garbage collector frees the buffers that they came in. */
export const passedBytesPerCollection = 4 * MIB;
/** TLS sessions that are remembered, to be resumed. */
export const tlsSessionsMax = 100;
/** The timeout of a DNS query, and the number of queries to each server. */
export const nameTryMs = 1_000;
export const nameTriesMax = 2;
/** How long the addresses of one family wait for those of the other (RFC 8305 §3). */
export const otherFamilyMs = 50;
/** Names whose addresses are cached, and the shortest and longest time that they are cached. */
export const namesRememberedMax = 10_000;
export const nameTrustMsMin = 1_000;
export const nameTrustMsMax = 60_000;
/** How long the servers of a service are remembered, and how many of them. */
export const serviceTrustMs = 10_000;
export const serviceServersMax = 64;
/** How long the hosts file is cached before it is read again. */
export const hostsTrustMs = 2_000;
/** Names that the system resolves at the same time: each occupies one of libuv's four threads. */
export const systemLookupsMax = 2;
/** Bytes that are read of a response of which only the beginning matters. */
export const oneShotContentBytesMax = 16 * KIB;
/** How long the websocket to another Waymark server takes to open. */
export const apiSocketConnectMs = 10_000;
/** How often it is pinged, and after which silence it is closed. */
export const apiSocketPingMs = 5_000;
export const apiSocketSilentMs = 15_000;
/** Packets of it, and bytes of them, that wait until they are read. */
export const apiSocketPacketsMax = 1_000;
export const apiSocketBufferedBytesMax = 8 * 2 ** 20;
/** The bytes of one message: a row of the log may have content of many MiB. */
export const apiSocketMessageBytesMax = 512 * 2 ** 20;
/** How long a request with an Expect waits for an answer before it sends its content. */
export const continueWaitMs = 1_000;
/** The wait before a further attempt to connect to syslog, and how long its last lines may take. */
export const syslogRetryMs = 1_000;
export const syslogEndMs = 1_000;
/** How long the address of the receiver of datagrams is used before its name is looked up again. */
export const syslogAddressMs = 30_000;
/** Datagrams that may wait, before further ones are dropped. */
export const syslogWaitingMessagesMax = 1_000;
/** Bytes of lines that may wait for syslog, before further ones are dropped. */
export const syslogWaitingBytesMax = MIB;
