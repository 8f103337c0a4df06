import type { Asking } from '../http/reply.ts';
import { Failure } from '../model/failure.ts';
import type { FetchRule } from './fetch-source.ts';
import type { Fetch } from './fetch.ts';

/** A source that could not be had. */
interface FetchFailure {
  readonly code: 'bad_gateway' | 'gateway_timeout';
  readonly message: string;
  /** The id of the page rule that names the source. */
  readonly id: string;
}

/**
 * Tells of each failure of a source (docs/design/fetching.md#sources); a client that has gone is
 * none.
 */
export function fetchTelling(fetch: Fetch, tell: (failure: FetchFailure) => void): Fetch {
  const failing =
    ({ id }: FetchRule, { signal }: Asking) =>
    (error: unknown): never => {
      if (error instanceof Failure && !signal.aborted) {
        const { code, message } = error;
        const isSource = code === 'bad_gateway' || code === 'gateway_timeout';
        if (isSource) tell({ code, message, id });
      }
      throw error;
    };
  return {
    ...fetch,
    respond: (rule, request) => fetch.respond(rule, request).catch(failing(rule, request)),
    open: (rule, request) => fetch.open(rule, request).catch(failing(rule, request)),
  };
}
