import type { ContentRequest } from '../http/request.ts';
import { type ExplainedSource, type Explanation, type Winner, winnerName } from './explanation.ts';
import {
  type ContentSource,
  type ExplainedReply,
  type PageRequest,
  type ReplyOrPromise,
  type SourceExplanation,
  notFoundReply,
  replyOrFailure,
} from './source.ts';

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

/**
 * Explains which source replies, and why (docs/design/operations.md#explain). Explains the sources
 * after the one that replies as well, since the reader may wonder about a rule there.
 */
function explainFrom(
  sources: readonly ContentSource[],
  request: PageRequest,
  depth: number,
): Explanation {
  const tried: ExplainedSource[] = [];
  let winner: Winner | undefined;
  let notes: readonly string[] = [];
  let access: Explanation['access'];
  for (const source of sources) {
    const { reply, then, ...explained } = source.explain(request, depth);
    if (then !== undefined && winner === undefined) {
      const here = { source: source.name, ...explained };
      return { ...then, tried: [...tried, here, ...then.tried] };
    }
    tried.push({
      source: source.name,
      ...(winner === undefined ? explained : withLoss(explained, winner)),
    });
    if (reply === undefined || winner !== undefined) continue;
    const { status } = reply;
    const named = nameOf(reply);
    winner = { source: source.name, ...named, status };
    notes = reply.notes ?? [];
    access = reply.access;
    tried.push(...(reply.hops ?? []));
  }
  if (winner !== undefined) {
    const { status } = winner;
    return { winner, status, ...(access !== undefined && { access }), tried, notes };
  }
  const { status } = replyOrFailure(() => notFoundReply(request.method));
  return { winner: null, status, tried, notes };
}

function withLoss(
  { candidates, omitted }: Omit<SourceExplanation, 'reply'>,
  winner: Winner,
): Pick<ExplainedSource, 'candidates' | 'omitted'> {
  const lost = {
    code: 'earlier_source',
    says: `The source ${winner.source} comes first, and ${winnerName(winner)} answers.`,
  } as const;
  return {
    candidates: candidates.map((one) => (one.lost === undefined ? { ...one, lost } : one)),
    ...(omitted !== undefined && { omitted }),
  };
}

/** The name of what replies, as in `Winner`. */
function nameOf({ redirect, mount, proxy, id }: ExplainedReply): Omit<Winner, 'source' | 'status'> {
  if (redirect !== undefined) return { redirect };
  if (mount !== undefined) return { mount };
  return proxy === undefined ? { id: id ?? '' } : { proxy };
}
