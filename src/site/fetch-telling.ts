import type { ContentRequest } from '../http/request.ts';
import { Failure } from '../model/failure.ts';
import type { FetchRule } from './fetch-source.ts';
import type { Fetch } from './fetch.ts';

/** A source that could not be had. */
export interface FetchFailure {
  readonly code: 'bad_gateway' | 'gateway_timeout';
  readonly message: string;
  /** The id of the page rule that names the source. */
  readonly id: string;
}

/** Tells of each failure of a source (contract §8); a client that has gone is none. */
export function fetchTelling(fetch: Fetch, tell: (failure: FetchFailure) => void): Fetch {
  function telling<T>(
    { id }: FetchRule,
    { signal }: ContentRequest,
    answer: Promise<T>,
  ): Promise<T> {
    return answer.catch((error: unknown) => {
      if (error instanceof Failure && !signal.aborted) {
        const { code, message } = error;
        const isSource = code === 'bad_gateway' || code === 'gateway_timeout';
        if (isSource) tell({ code, message, id });
      }
      throw error;
    });
  }
  return {
    ...fetch,
    respond: (rule, request) => telling(rule, request, fetch.respond(rule, request)),
    open: (rule, request) => telling(rule, request, fetch.open(rule, request)),
  };
}
