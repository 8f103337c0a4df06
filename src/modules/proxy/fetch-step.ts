import type { Step } from '../../core/pipeline/pipeline.ts';
import type { PlaceAccess } from '../../core/pipeline/place-access.ts';
import { sourceStep, withSlashRedirect } from '../../core/pipeline/source-step.ts';
import {
  type ContentSource,
  type ExpectedReply,
  type PageRequest,
  optionsReply,
  replyOrFailure,
} from '../../core/pipeline/source.ts';
import {
  candidatesOf,
  explainCandidates,
  explainSilent,
  findRule,
  silentCandidatesOf,
  winnerOf,
} from '../rules/find.ts';
import { withHeaderNote, withRuleHeaders } from '../rules/pages/rule-headers.ts';
import { failureOf, withLanguageVary, withRuleFailure } from '../rules/pages/rule-replies.ts';
import { type Rule, accessOf, proxyName } from '../rules/rule.ts';
import type { RuleReader } from '../rules/valid-rules.ts';
import { allowedMethods, forwardsMethod } from './fetch-plan.ts';
import { type Fetcher, passesUpgrade } from './fetcher.ts';

/** The page rules of the kind content.fetch, and proxies, which may allow any method. */
export function fetchStep({
  rules,
  fetch,
  access,
}: {
  /** Those of `[proxy.<name>]` among them. */
  readonly rules: RuleReader;
  readonly fetch: Fetcher;
  readonly access: PlaceAccess;
}): Step {
  const source: ContentSource = {
    name: 'content.fetch',
    respond(asked) {
      const found = findRule('content.fetch', rules, asked);
      if (found === undefined) return undefined;
      const { rule } = found.stored;
      return access.admitted(accessOf(rule), asked, (request) => {
        const answer = withRuleFailure(
          () => rule,
          () => {
            if (!isForwarded(rule, request.method)) return optionsReply(allowedMethods(rule));
            return withLanguageVary(found, fetch.respond(rule, request));
          },
        );
        return withRuleHeaders(rule, answer, request);
      });
    },
    explain(request) {
      const ordered = candidatesOf('content.fetch', rules, request);
      const rule = winnerOf(ordered, rules, request)?.stored.rule;
      const silent = explainSilent(silentCandidatesOf('content.fetch', rules, request), rules);
      if (rule === undefined) return { candidates: silent, reply: undefined };
      const { candidates, ...omitted } = explainCandidates(ordered, request.fields);
      const reply = explainFetch(fetch, rule, request);
      const sections = access.explainSections([accessOf(rule)], request.visitor);
      const named = { ...reply, ...(sections.length > 0 && { access: sections }) };
      return { candidates: [...candidates, ...silent], ...omitted, reply: named };
    },
  };
  return {
    ...sourceStep(
      'fetch',
      withSlashRedirect(source, () => false),
    ),
    open(request, next) {
      const rule = findRule('content.fetch', rules, request)?.stored.rule;
      if (rule === undefined) return next(request);
      return access.admitted(accessOf(rule), request, async (admitted) => {
        try {
          return await fetch.upgrade(rule, admitted);
        } catch (thrown) {
          throw failureOf(rule, thrown);
        }
      });
    },
    forwards(request, next) {
      const rule = findRule('content.fetch', rules, request)?.stored.rule;
      return rule === undefined ? next(request) : passesUpgrade(rule, request);
    },
  };
}

function explainFetch(fetch: Fetcher, rule: Rule, request: PageRequest) {
  const outcome = replyOrFailure((): ExpectedReply => {
    if (!isForwarded(rule, request.method)) return { status: 204 };
    return fetch.explain(rule, request);
  });
  const proxy = proxyName(rule.id);
  const named = proxy === undefined ? { id: rule.id } : { proxy };
  return { ...named, ...withHeaderNote(rule, outcome) };
}

/** Whether a method is forwarded: this server answers OPTIONS itself, unless the rule lists it. */
function isForwarded(rule: Rule, method: string): boolean {
  return method !== 'OPTIONS' || forwardsMethod(rule, method);
}
