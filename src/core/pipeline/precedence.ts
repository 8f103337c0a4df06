import type { ContentRequest } from '../http/request.ts';
import type { Explanation } from './explanation.ts';
import type { ContentSource, PageRequest, ReplyOrPromise } from './source.ts';
import { explainFrom } from './explain.ts';

/** Some sources in their order, such as the whole precedence. */
export interface Precedence {
  /** The reply of the first source that has one. Throws or rejects as ContentSource.respond. */
  respond(request: ContentRequest, depth: number): ReplyOrPromise;
  explain(request: PageRequest, depth: number): Explanation;
}

/** The precedence of sources; `list` is called for each request. */
export function precedenceOf(list: () => readonly ContentSource[]): Precedence {
  return {
    respond: (request, depth) => respondFrom(list(), request, depth),
    explain: (request, depth) => explainFrom(list(), request, depth),
  };
}

/**
 * Tries the sources in order, and waits only for those that return promises. `depth` counts the
 * generic pages that the request has passed through.
 */
function respondFrom(
  sources: readonly ContentSource[],
  request: ContentRequest,
  depth: number,
  first = 0,
): ReplyOrPromise {
  for (let at = first; at < sources.length; at += 1) {
    const answer = sources[at]?.respond(request, depth);
    if (answer instanceof Promise) {
      return answer.then((reply) => reply ?? respondFrom(sources, request, depth, at + 1));
    }
    if (answer !== undefined) return answer;
  }
  return undefined;
}
