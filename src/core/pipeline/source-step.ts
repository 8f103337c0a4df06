import { respelledReply } from '../http/respelled.ts';
import { withSingleSlashes } from '../values/path.ts';
import { type ExplainedSource, type Explanation, type Winner, winnerName } from './explanation.ts';
import type { StepPlace, Step } from './pipeline.ts';
import type {
  ContentSource,
  ExplainedReply,
  ExplainedRequest,
  PageRequest,
  SourceExplanation,
} from './source.ts';

/** The step of a source of content: what it does not have, the steps after it may have. */
export function sourceStep(
  at: StepPlace,
  source: ContentSource,
): Step & Required<Pick<Step, 'handle'>> {
  return {
    at,
    handle(request, next) {
      const answer = source.respond(request);
      if (answer === undefined) return next(request);
      if (source.mayMiss !== true || !(answer instanceof Promise)) return answer;
      return answer.then((reply) => reply ?? next(request));
    },
    explain: (request, next) => explainSource(source, request, next),
  };
}

/**
 * Explains whether a source replies, and why (docs/design/operations.md#explain). Explains the
 * sources after the one that replies as well, since the reader may wonder about a rule there.
 */
export function explainSource(
  source: Pick<ContentSource, 'name' | 'explain'>,
  request: ExplainedRequest,
  next: (request: ExplainedRequest) => Explanation,
): Explanation {
  const { winner: earlier } = request;
  const { reply, then, ...explained } = source.explain(request);
  const here: ExplainedSource = {
    source: source.name,
    ...(earlier === undefined ? explained : withLoss(explained, earlier)),
  };
  if (then !== undefined && earlier === undefined) return { ...then, tried: [here, ...then.tried] };
  if (reply === undefined || earlier !== undefined) {
    const later = next(request);
    return { ...later, tried: [here, ...later.tried] };
  }
  const { status, notes = [], access, hops = [] } = reply;
  const winner = { source: source.name, ...nameOf(reply), status };
  const { tried } = next({ ...request, winner });
  return {
    ...{ winner, status, notes },
    ...(access !== undefined && { access }),
    tried: [here, ...hops, ...tried],
  };
}

function withLoss(
  { candidates, omitted }: Pick<SourceExplanation, 'candidates' | 'omitted'>,
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

/**
 * A source that redirects a path with empty segments, such as `//a//b`, to the one with single
 * slashes if it answers that one, and does not answer the path as it is. If `comesFirst` says so,
 * the redirect comes before an answer to the path as it is.
 */
export function withSlashRedirect(
  source: ContentSource,
  comesFirst: (single: PageRequest, request: PageRequest) => boolean,
): ContentSource {
  const explainThere = (single: PageRequest): SourceExplanation => {
    const there = source.explain(single);
    return there.reply === undefined ? there : { ...there, reply: redirected(there.reply, single) };
  };
  return {
    ...source,
    respond(request) {
      const single = singleSlashed(request);
      const isFirst = single !== undefined && comesFirst(single, request);
      const answer = isFirst ? undefined : source.respond(request);
      if (answer !== undefined || single === undefined) return answer;
      const { reply } = source.explain(single);
      return reply && respelledReply(single, winnerName(reply));
    },
    explain(request) {
      const single = singleSlashed(request);
      if (single !== undefined && comesFirst(single, request)) return explainThere(single);
      const explained = source.explain(request);
      if (single === undefined || explained.reply !== undefined) return explained;
      const there = explainThere(single);
      return there.reply === undefined ? explained : there;
    },
  };
}

/**
 * The request with single slashes; undefined if it has no others, and for what redirects cannot
 * answer: OPTIONS, because browsers follow no redirect of a preflight, and generic pages.
 */
function singleSlashed<T extends PageRequest>(request: T): T | undefined {
  if (request.inside === 'page' || request.method === 'OPTIONS') return undefined;
  const single = withSingleSlashes(request);
  return single && { ...request, ...single };
}

function redirected({ mount, id }: ExplainedReply, { sentPath }: PageRequest): ExplainedReply {
  return {
    ...(mount !== undefined && { mount }),
    ...(id !== undefined && { id }),
    status: 308,
    notes: [`It has this path with single slashes: the server redirects to ${sentPath}.`],
  };
}
