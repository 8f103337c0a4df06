import { type Reply } from '../../http/reply.ts';
import { isRead } from '../../http/request.ts';
import type { SharedLimit } from '../../fair/shared-limit.ts';
import type { Exchange } from '../../pipeline/exchange.ts';
import type { IncomingRequest } from '../../pipeline/incoming-request.ts';
import type { Serving } from '../../pipeline/serving.ts';
import { readOnlyReply } from '../../pipeline/source.ts';
import type { Failure } from '../../values/failure.ts';
import type { Caller } from '../../values/key.ts';

/** A validated request below `{base}/svc1`, which names no operation. */
export interface ServiceRequest {
  /** The part of the path after `/svc1`. */
  readonly path: string;
  readonly exchange: Exchange;
  readonly incoming: IncomingRequest;
  /** The caller by its key. Throws `unauthenticated` for a wrong one. */
  readonly identify: () => Caller;
  /** Turns a thrown value into a failure, and logs it under the id in the answer. */
  readonly fail: (thrown: unknown) => { readonly failure: Failure; readonly id: string };
  readonly signal: () => AbortSignal;
  /** When the request arrived, in milliseconds since 1970. */
  readonly nowMs: number;
  /** Limits the bytes of unanswered requests. */
  readonly requests: SharedLimit;
  /** Counts the content of an answer as unread; throws if that is too much. */
  readonly hold: (reply: Reply, caller: Caller | undefined) => void;
}

/**
 * Answers paths below `{base}/svc1` that are no operations; undefined for all others. It may throw
 * or reject with a Failure, which becomes the answer.
 */
export type ServicePath = (
  serving: Serving,
  request: ServiceRequest,
) => Reply | Promise<Reply> | undefined;

/** Refuses methods other than GET and HEAD, as pages do; undefined for those two. */
export function methodReply({ head: { method } }: Exchange): Reply | undefined {
  return isRead(method) ? undefined : { ...readOnlyReply(method), source: 'svc1' };
}
