import { requestTimeoutMs } from '../../api/limits.ts';
import { requestCheckMs, tlsHandshakeTimeoutMs } from './limits.ts';
import { headersTimeoutMs, keepAliveTimeoutMs, stalledMs } from '../limits.ts';

/** How long a server waits for its clients, in milliseconds. */
export interface Timeouts {
  /** For a TLS handshake. */
  readonly handshakeMs: number;
  /** For the head of a request, from the beginning of the connection or the end of the last one. */
  readonly headersMs: number;
  /** For a whole request. */
  readonly requestMs: number;
  /** How often it looks whether one of them is over. */
  readonly lookMs: number;
  /** For another request. */
  readonly keepAliveMs: number;
  /** For an answer to be read on, or anything to be said. */
  readonly stalledMs: number;
}

/** The patience of docs/design/failures.md#limits. */
export const timeouts: Timeouts = {
  handshakeMs: tlsHandshakeTimeoutMs,
  headersMs: headersTimeoutMs,
  requestMs: requestTimeoutMs,
  lookMs: requestCheckMs,
  keepAliveMs: keepAliveTimeoutMs,
  stalledMs,
};
