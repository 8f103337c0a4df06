import { winnerName, type Explanation, type ExplainedSource, type Winner } from './explanation.ts';
import {
  notFoundReply,
  replyOrFailure,
  type ExplainedReply,
  type PageRequest,
  type SourceExplanation,
  type ContentSource,
} from './source.ts';

/**
 * Explains which source replies, and why (docs/design/operations.md#explain). Explains the sources
 * after the one that replies as well, since the reader may wonder about a rule there.
 */
export function explainFrom(
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
