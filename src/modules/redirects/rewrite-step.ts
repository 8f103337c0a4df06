import { coversOrigin } from '../../core/values/network/origin-pattern.ts';
import type { RewriteConfig } from '../../core/config/config.ts';
import type { RequestTarget } from '../../core/http/request.ts';
import type { CandidateExplanation } from '../../core/pipeline/explanation.ts';
import { asQueryValue, canonicalPath, encodePath, requestPathOf } from '../../core/values/path.ts';
import type { InsidePaths, Step } from '../../core/pipeline/pipeline.ts';
import { explainSource } from '../../core/pipeline/source-step.ts';
import {
  type PageRequest,
  type SourceExplanation,
  notFoundReply,
} from '../../core/pipeline/source.ts';
import { whenReady } from '../../core/values/when-ready.ts';
import { pathPattern } from '../../core/values/linear-pattern.ts';

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
 * The step that leads a request to its rewritten path, or answers with 404 if there is nothing. A
 * path inside the server is not rewritten.
 */
export function rewriteStep(rewriter: Rewriter, inside: InsidePaths): Step {
  return {
    at: 'rewrite',
    handle(request, next) {
      const found = request.inside === undefined ? rewriter.find(request) : undefined;
      if (found === undefined) return next(request);
      const reply =
        found.target && inside.handle({ ...request, ...found.target, inside: 'rewrite' });
      return whenReady(reply, (one) => one ?? notFoundReply(request.method));
    },
    open(request, next) {
      const target = rewriter.find(request)?.target;
      return target === undefined
        ? next(request)
        : inside.open({ ...request, ...target, inside: 'rewrite' });
    },
    forwards: (request, next) => next({ ...request, ...rewriter.find(request)?.target }),
    explain(request, next) {
      if (request.inside !== undefined) return next(request);
      const explained = explainRewrite(rewriter, request, inside);
      return explainSource({ name: 'rewrite', explain: () => explained }, request, next);
    },
  };
}

function explainRewrite(
  rewriter: Rewriter,
  request: PageRequest,
  inside: InsidePaths,
): SourceExplanation {
  const found = rewriter.find(request);
  if (found === undefined) return { candidates: [], reply: undefined };
  const { name: first, target } = found;
  const candidates = rewriter.all(request).map(({ name, origin, match }): CandidateExplanation => {
    const place = { rewrite: name, origin, path: match };
    if (name === first) return place;
    const says = `The rewrite ${first} comes first in the ini file.`;
    return { ...place, lost: { code: 'earlier_rewrite', says } };
  });
  if (target === undefined) {
    const notes = [`The rewrite ${first} makes no valid path of this one.`];
    const then = { winner: null, status: 404, tried: [], notes };
    return { candidates, reply: undefined, then };
  }
  const there = inside.explain({ ...request, ...target, inside: 'rewrite' });
  const query = target.query === '' ? '' : `?${target.query}`;
  const note = `The rewrite ${first} leads inside the server to ${target.sentPath}${query}.`;
  return { candidates, reply: undefined, then: { ...there, notes: [note, ...there.notes] } };
}
