import { respelledReply } from '../http/respelled.ts';
import { winnerName } from './explanation.ts';
import { withSingleSlashes } from '../values/path.ts';
import type { ContentSource, ExplainedReply, PageRequest, SourceExplanation } from './source.ts';

/**
 * A source that redirects a path with empty segments, such as `//a//b`, to the one with single
 * slashes if it answers that one, and does not answer the path as it is. If `comesFirst` says so,
 * the redirect comes before an answer to the path as it is.
 */
export function withSlashRedirect(
  source: ContentSource,
  comesFirst: (single: PageRequest, request: PageRequest) => boolean,
): ContentSource {
  const explainThere = (single: PageRequest, depth: number): SourceExplanation => {
    const there = source.explain(single, depth);
    return there.reply === undefined ? there : { ...there, reply: redirected(there.reply, single) };
  };
  return {
    name: source.name,
    respond(request, depth) {
      const single = singleSlashed(request, depth);
      const isFirst = single !== undefined && comesFirst(single, request);
      const answer = isFirst ? undefined : source.respond(request, depth);
      if (answer !== undefined || single === undefined) return answer;
      const { reply } = source.explain(single, depth);
      return reply && respelledReply(single, winnerName(reply));
    },
    explain(request, depth) {
      const single = singleSlashed(request, depth);
      if (single !== undefined && comesFirst(single, request)) return explainThere(single, depth);
      const explained = source.explain(request, depth);
      if (single === undefined || explained.reply !== undefined) return explained;
      const there = explainThere(single, depth);
      return there.reply === undefined ? explained : there;
    },
  };
}

/**
 * The request with single slashes; undefined if it has no others, and for what redirects cannot
 * answer: OPTIONS, because browsers follow no redirect of a preflight, and generic pages.
 */
function singleSlashed<T extends PageRequest>(request: T, depth: number): T | undefined {
  if (depth > 0 || request.method === 'OPTIONS') return undefined;
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
