import type { ContentRequest, Fields } from '../../core/http/request.ts';
import type { PlaceAccess } from '../../core/pipeline/place-access.ts';
import { whenReady } from '../../core/values/when-ready.ts';
import type { PageKind } from '../rules/pages/page-kind.ts';
import { withLanguageVary, withRuleFailure } from '../rules/pages/rule-replies.ts';
import type { RuleReader } from '../rules/valid-rules.ts';
import { explainHops } from './explain.ts';
import { visitReply } from './reply.ts';
import { type BreadcrumbHop, type ResolvedBreadcrumb, resolveVisit } from './resolve.ts';
import type { CountVisit } from './visit-counter.ts';
import { requireHops } from './key-visits.ts';

/** Breadcrumbs: page rules of the kind `resolve`. */
export function breadcrumbKind({
  rules,
  access,
  countVisit,
}: {
  readonly rules: RuleReader;
  readonly access: PlaceAccess;
  /** Undefined for requests of operations. */
  readonly countVisit?: CountVisit | undefined;
}): PageKind {
  return {
    takes: ({ kind }) => kind === 'resolve',
    isComplete: true,
    respond(found, request) {
      const steps: BreadcrumbHop[] = [];
      const reply = (resolved: ResolvedBreadcrumb) => {
        if (request.method === 'GET') countVisit?.(resolved, request);
        return visitReply(resolved, request);
      };
      return withRuleFailure(
        () => (steps.at(-1)?.stored ?? found.stored).rule,
        () => {
          const made = resolveVisit(rules, found, request, steps);
          const resolved = whenReady(made, (one) => withHops(access, one, request));
          return withLanguageVary(found, whenReady(resolved, reply));
        },
      );
    },
    explain(found, request) {
      const steps: BreadcrumbHop[] = [];
      const explained = explainHops(rules, found, request, steps);
      return { ...explained, over: steps.map(({ stored }) => stored.rule) };
    },
  };
}

/** Requires access to the further keys that a breadcrumb leads over. */
function withHops(
  access: PlaceAccess,
  resolved: ResolvedBreadcrumb,
  request: ContentRequest,
): ResolvedBreadcrumb | Promise<ResolvedBreadcrumb> {
  const { origin, visitor, accessRules, password } = request;
  const fields = password === undefined ? request.fields : withPassword(request.fields, password);
  const { client = { fields, visitor, isForeign: false } } = request;
  const required = requireHops(
    access,
    { resolved, origin, isFirstAdmitted: true },
    client,
    accessRules,
  );
  return required === undefined ? resolved : required.then(() => resolved);
}

/** The fields of a client, as it has sent them to this server. */
function withPassword(fields: Fields, authorization: string): Fields {
  const all = Object.create(null) as Record<string, string | undefined>;
  return Object.assign(all, fields, { authorization });
}
