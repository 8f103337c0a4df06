/** How long a connection over TLS is silent before the system looks whether it is still there. */
export const tcpKeepAliveMs = 60_000;
