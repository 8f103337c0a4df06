import type { Reply } from '../../../core/http/reply.ts';
import type { ContentRequest } from '../../../core/http/request.ts';
import type { InsidePaths } from '../../../core/pipeline/pipeline.ts';
import type { ExplainedReply, PageRequest, ReplyOrPromise } from '../../../core/pipeline/source.ts';
import type { FoundRule, Rule } from '../rule.ts';
import type { GenericPages } from './generic-pages.ts';
import { withLanguageVary } from './rule-replies.ts';
import { type StoredPages, pageStatus } from './stored-pages.ts';

/** A way in which page rules answer; of several, the first one that takes a rule answers for it. */
export interface PageKind {
  readonly takes: (rule: Rule) => boolean;
  /** Whether it shows another page inside: it cannot stand inside another one itself. */
  readonly hasPageInside?: true;
  /** Whether it names its failures, and sets the `headers` of its rule. */
  readonly isComplete?: true;
  /** The reply to a GET or HEAD of somebody who has access to the rule. */
  respond(found: FoundRule, request: ContentRequest): ReplyOrPromise;
  /** Explains respond; `over` names the further rules that it leads over. */
  explain(
    found: FoundRule,
    request: PageRequest,
  ): ExplainedReply & { readonly over?: readonly Rule[] };
}

/** Rules that have their content, or none that an engine would show. */
export function contentKind(stored: StoredPages): PageKind {
  return {
    takes: (rule) => rule.content !== undefined || (rule.kind === 'content' && !usesEngine(rule)),
    respond: (found, request) => stored.respond(found, request),
    explain: ({ stored: { rule } }) => ({ status: pageStatus(rule) }),
  };
}

/** Shows the page of an engine in place of a rule; `open` gives the reply of that page. */
type PageInside = (
  found: FoundRule,
  request: ContentRequest,
  open: (request: ContentRequest) => Promise<Reply>,
) => Reply | Promise<Reply>;

/** All other rules: the generic page of an engine, which `render` may change on the server. */
export function genericKind(
  generic: GenericPages,
  inside: Pick<InsidePaths, 'handle' | 'explain'>,
  { mayRender, render }: { readonly mayRender: PageKind['takes']; readonly render: PageInside },
): PageKind {
  const open = (page: ContentRequest) => inside.handle({ ...page, inside: 'page' });
  return {
    takes: () => true,
    hasPageInside: true,
    respond(found, request) {
      const page = (given: ContentRequest) => generic.respond(found, given, open);
      const isRendered = mayRender(found.stored.rule);
      return withLanguageVary(found, isRendered ? render(found, request, page) : page(request));
    },
    explain(found, request) {
      const explained = generic.explain(found, request, (page) =>
        inside.explain({ ...page, inside: 'page' }),
      );
      const { engine, enginedata } = found.stored.rule;
      // `enginedata.when` may decide otherwise for a visitor.
      if (engine !== 'template' || enginedata?.render !== 'server') return explained;
      return {
        ...explained,
        notes: [...(explained.notes ?? []), 'The server renders its template.'],
      };
    },
  };
}

/** Also true for an unknown engine: its generic page explains the mistake and is never blank. */
function usesEngine({ engine, _unknowns_ }: Rule): boolean {
  return engine !== undefined || typeof _unknowns_?.engine === 'string';
}
