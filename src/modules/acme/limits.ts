/** The shortest time between a failure and an order by a restarted server. */
export const acmeRestartMs = 10 * 60_000;

/** How long an order may take as a whole. */
export const acmeOrderMs = 5 * 60_000;

/** How long a connection to an ACME server, and one of its answers, may take. */
export const acmeConnectMs = 10_000;
export const acmeRequestMs = 30_000;

/** Characters that are stored of an error message of an ACME server. */
export const acmeErrorCharactersMax = 500;

/** How long the suggestion of an ACME server when to renew holds: by default, and the limits. */
export const acmeInfoMs = 6 * 3_600_000;
