import type { FieldList } from '../http/reply.ts';

/** The parts of a request that undici cannot send. */
export interface RequestExtras {
  /** Trailer fields (RFC 9110 §6.5), complete once the content has ended. */
  readonly trailers?: (() => FieldList) | undefined;
  /** Whether the client waits for the decision about its content (RFC 9110 §10.1.1). */
  readonly expectsContinue?: boolean | undefined;
  /** Bytes at the beginning of the connection, which then has no other request. */
  readonly preamble?: Buffer | undefined;
}
