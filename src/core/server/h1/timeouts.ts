import { requestTimeoutMs } from '../../operations/limits.ts';
import type { RateLimit } from '../least-rate.ts';
import { headersTimeoutMs, keepAliveTimeoutMs, leastRate, stalledMs } from '../limits.ts';

/** The interval between two checks of running requests for their timeouts. */
const requestCheckMs = 1_000;

/** The longest time for a TLS handshake. */
export const tlsHandshakeTimeoutMs = 10_000;

/** The timeouts of a server for its clients, in milliseconds. */
export interface Timeouts {
  /** For a TLS handshake. */
  readonly handshakeMs: number;
  /** For the head of a request, from the start of the connection or the end of the last request. */
  readonly headersMs: number;
  /** For a whole request. */
  readonly requestMs: number;
  /** The interval between two checks for them. */
  readonly checkMs: number;
  /** For the next request. */
  readonly keepAliveMs: number;
  /** For a client to read more of an answer, and for any byte of a silent connection. */
  readonly stalledMs: number;
  /** For content that arrives, and answers that the client reads. */
  readonly leastRate: RateLimit;
}

/** The timeouts of docs/design/failures.md#limits. */
export const timeouts: Timeouts = {
  handshakeMs: tlsHandshakeTimeoutMs,
  headersMs: headersTimeoutMs,
  requestMs: requestTimeoutMs,
  checkMs: requestCheckMs,
  keepAliveMs: keepAliveTimeoutMs,
  stalledMs,
  leastRate,
};
