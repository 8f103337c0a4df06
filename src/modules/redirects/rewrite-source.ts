import { coversOrigin } from '../../core/values/network/origin-pattern.ts';
import type { RewriteConfig } from '../../core/config/config.ts';
import type { RequestTarget } from '../../core/http/request.ts';
import type { CandidateExplanation } from '../../core/pipeline/explanation.ts';
import { asQueryValue, canonicalPath, encodePath, requestPathOf } from '../../core/values/path.ts';
import { notFoundReply, type ContentSource, type PageRequest } from '../../core/pipeline/source.ts';
import { pathPattern } from '../../core/values/linear-pattern.ts';
import type { Precedence } from '../../core/pipeline/precedence.ts';

/** The rewrite that applies to a request. */
interface FoundRewrite {
  readonly name: string;
  /** The new target; undefined if the values of the request make no valid path. */
  readonly target: RequestTarget | undefined;
}

/** Rewrites the paths of requests inside the server; the first section that applies decides. */
export interface Rewriter {
  readonly isEmpty: boolean;
  /** Undefined if none applies. */
  find(request: RequestTarget): FoundRewrite | undefined;
  /** The sections that apply, in their order. */
  all(request: RequestTarget): readonly RewriteConfig[];
}

/** Compiles the `[rewrite.<name>]` sections. */
export function createRewriter(rewrites: readonly RewriteConfig[]): Rewriter {
  const compiled = rewrites.map((config) => {
    const { origin, match } = config;
    const pattern = pathPattern(match);
    const groupsOf = (request: RequestTarget): readonly (string | undefined)[] | null =>
      coversOrigin(origin, request.origin) ? pattern.exec(request.path) : null;
    return { config, groupsOf };
  });
  return {
    isEmpty: compiled.length === 0,
    find(request) {
      for (const { config, groupsOf } of compiled) {
        const groups = groupsOf(request);
        if (groups === null) continue;
        return { name: config.name, target: filledTarget(config.to, groups, request) };
      }
      return undefined;
    },
    all: (request) =>
      compiled.filter(({ groupsOf }) => groupsOf(request) !== null).map(({ config }) => config),
  };
}

/** The target of a rewrite with the groups of its pattern; the query of the request is added. */
function filledTarget(
  to: string,
  groups: readonly (string | undefined)[],
  { origin, query }: RequestTarget,
): RequestTarget | undefined {
  const [written = '', ownQuery] = to.split('?');
  const fill = (text: string, write: (group: string) => string): string =>
    text.replace(/\$(\d{1,2})/g, (_, digits: string) => write(groups[Number(digits)] ?? ''));
  const path = canonicalPath(encodePath(fill(written, (group) => group)));
  if (path === undefined) return undefined;
  const filled = ownQuery && fill(ownQuery, (group) => asQueryValue(encodePath(group)));
  const all = [filled, query].filter((part) => part !== undefined && part !== '').join('&');
  return { origin, ...requestPathOf(path), query: all };
}

/**
 * The source that answers with the content of a rewritten path, or with 404 if there is none.
 * Generic pages that open a page inside are not rewritten.
 */
export function rewriteSource(rewriter: Rewriter, inside: Precedence): ContentSource {
  const find = (request: PageRequest, depth: number) =>
    depth > 0 ? undefined : rewriter.find(request);
  return {
    name: 'rewrite',
    respond(request, depth) {
      const found = find(request, depth);
      if (found === undefined) return undefined;
      if (found.target === undefined) return notFoundReply(request.method);
      const reply = inside.respond({ ...request, ...found.target }, depth);
      if (!(reply instanceof Promise)) return reply ?? notFoundReply(request.method);
      return reply.then((one) => one ?? notFoundReply(request.method));
    },
    explain(request, depth) {
      const found = find(request, depth);
      if (found === undefined) return { candidates: [], reply: undefined };
      const { name: first, target } = found;
      const candidates = rewriter.all(request).map(({ name, origin, match }) => {
        const place: CandidateExplanation = { rewrite: name, origin, path: match };
        const says = `The rewrite ${first} comes first in the ini file.`;
        return name === first
          ? place
          : { ...place, lost: { code: 'earlier_rewrite', says } as const };
      });
      if (target === undefined) {
        const notes = [`The rewrite ${first} makes no valid path of this one.`];
        return {
          candidates,
          reply: undefined,
          then: { winner: null, status: 404, tried: [], notes },
        };
      }
      const there = inside.explain({ ...request, ...target }, depth);
      const query = target.query === '' ? '' : `?${target.query}`;
      const note = `The rewrite ${first} leads inside the server to ${target.sentPath}${query}.`;
      return { candidates, reply: undefined, then: { ...there, notes: [note, ...there.notes] } };
    },
  };
}
