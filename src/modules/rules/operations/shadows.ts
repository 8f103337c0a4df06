import { originsOf } from '../rule.ts';
import { originAt } from '../../../core/values/network/origin-pattern.ts';
import type { Problem } from '../../../core/values/failure.ts';
import {
  canonicalPath,
  hasWildcard,
  requestPathOf,
  type CanonicalPath,
} from '../../../core/values/path.ts';
import type { Candidate, Rule } from '../rule.ts';
import { sortByPrecedence, lossReason } from '../matcher.ts';
import type { Reads } from '../../../core/log/store.ts';
import type { Call } from '../../../core/operations/operation.ts';
import type { Winner } from '../../../core/pipeline/explanation.ts';
import type { PageRequest } from '../../../core/pipeline/source.ts';
import type { SiteAccess } from '../site-access.ts';
import { storedRules } from '../log/family.ts';

/** The parts by which siteProblems finds what else answers. */
export interface ShadowParts {
  readonly store: Pick<Reads, 'of'>;
  readonly site: Pick<SiteAccess, 'explain' | 'hasFile'>;
}

/** The call for which shadows are described. */
type ShadowCall = Pick<Call, 'origin' | 'visitor' | 'caller'>;

/**
 * The problems of a page rule that follow from what else answers on the site: what hides it or is
 * hidden by it, and a generic page that is missing.
 */
export function siteProblems(parts: ShadowParts, rule: Rule, call: ShadowCall): readonly Problem[] {
  return [...pageProblems(rule, parts, call), ...shadowProblems(parts, rule, call)];
}

/** Whether siteProblems finds a problem. */
export function isSiteProblem({ field, reason }: Problem): boolean {
  return reason === 'shadowed' || (reason === 'no_effect' && field === 'enginedata.page');
}

/** A generic page at whose path nothing answers that it could show. */
function pageProblems(
  { id, kind, origin, content, asset, enginedata }: Rule,
  { site }: Pick<ShadowParts, 'site'>,
  call: ShadowCall,
): readonly Problem[] {
  const named = enginedata?.page;
  const isGeneric = kind !== 'content.fetch' && content === undefined && asset === undefined;
  // A bound key must not learn which pages exist outside of its bounds.
  if (!isGeneric || typeof named !== 'string' || call.caller.bounds !== undefined) return [];
  const path = canonicalPath(named);
  const winnerAt = (one: string): Winner | null =>
    path === undefined ? null : site.explain(visitOf({ origin: one, path }, call)).winner;
  const origins = originsOf(origin);
  const missing = origins.flatMap((one) => {
    const winner = winnerAt(one);
    return winner === null || winner.id === id ? [{ one, winner }] : [];
  });
  const [first] = missing;
  if (first === undefined) return [];
  const where = origins.length === 1 ? '' : ` at ${missing.map(({ one }) => one).join(', ')}`;
  const what = first.winner === null ? 'nothing' : 'only the rule itself';
  const message =
    `enginedata.page has no effect${where}: ${what} answers at ${named}. ` +
    'The built-in generic page is shown.';
  return [{ field: 'enginedata.page', reason: 'no_effect', message }];
}

/**
 * A problem if a file or another rule with the same path hides a page rule from every visitor, or
 * if it hides another rule (docs/design/page-rules.md#invalid-values).
 */
function shadowProblems(
  { store, site }: ShadowParts,
  rule: Rule,
  call: ShadowCall,
): readonly Problem[] {
  const unknowns = rule._unknowns_ ?? {};
  const waits = ['origin', 'from', 'until'].some((name) => unknowns[name] !== undefined);
  if (waits) return [];
  const origins = originsOf(rule.origin);
  const messages = origins.flatMap((origin) => {
    const place = { origin, path: rule.path };
    const rules = rulesAt(store, place);
    const own = rules.find(({ id }) => id === rule.id);
    const { hidden, hides } = (own && ruleShadow(own, rules)) ?? {};
    const file = isVisited(rule.path) ? fileShadow(site, place, call) : undefined;
    const all = [file, hidden ?? hides].filter((message) => message !== undefined);
    return origins.length === 1 ? all : all.map((message) => `At ${origin}: ${message}`);
  });
  return messages.map((message) => ({ field: 'path', reason: 'shadowed', message }));
}

/** Why no visitor gets the page rules of a path, by their ids; without those that some get. */
export function shadowsAt(
  { store, site }: ShadowParts,
  place: Pick<Candidate, 'origin' | 'path'>,
  call: ShadowCall,
): ReadonlyMap<string, string> {
  const rules = rulesAt(store, place);
  const file = isVisited(place.path) ? fileShadow(site, place, call) : undefined;
  const all = rules.map((rule) => [rule.id, file ?? ruleShadow(rule, rules)?.hidden] as const);
  return new Map(all.filter((one): one is [string, string] => one[1] !== undefined));
}

/** Whether a path is that of one URL: not a wildcard, and not the key of a breadcrumb. */
function isVisited(path: string): boolean {
  return path.startsWith('/') && !hasWildcard(path);
}

function rulesAt(
  store: ShadowParts['store'],
  { origin, path }: Pick<Candidate, 'origin' | 'path'>,
): readonly Candidate[] {
  if (!hasWildcard(path)) return store.of(storedRules).exactRules(origin, path);
  // A `*` at the end may stand for nothing, one for a segment for any text.
  for (const group of store.of(storedRules).wildcardRules(origin, path.replace(/\*$/, ''))) {
    if (group[0]?.path === path) return group;
  }
  return [];
}

/** Which rule at the same path hides a rule, or which one it hides. */
function ruleShadow(
  own: Candidate,
  rules: readonly Candidate[],
): { readonly hidden?: string; readonly hides?: string } | undefined {
  const isFetched = own.kind === 'content.fetch';
  const stored = rules.find((one) => one.kind !== 'content.fetch' && isLasting(one));
  if (isFetched && stored !== undefined) {
    const why = 'it answers before content.fetch';
    return { hidden: `The page rule ${stored.id} at the same path hides this one: ${why}.` };
  }
  // Rules of different languages do not hide each other.
  const rivals = rules.filter(
    ({ kind, lang }) => lang === own.lang && (kind === 'content.fetch') === isFetched,
  );
  const ordered = sortByPrecedence(rivals, {});
  const at = ordered.findIndex(({ id }) => id === own.id);
  const winner = ordered.slice(0, at).find(isLasting);
  if (winner !== undefined) {
    const why = lossReason(winner, own, {})?.says ?? '';
    return { hidden: `The page rule ${winner.id} at the same path hides this one. ${why}` };
  }
  const next = isLasting(own) ? ordered[at + 1] : undefined;
  return next && { hides: `It hides the page rule ${next.id}, which has the same path.` };
}

/** Whether a rule answers at any time: others hide nothing from every visitor. */
function isLasting({ validity }: Candidate): boolean {
  return validity === undefined;
}

/** The request of the caller for the page at a place. */
function visitOf(
  { origin, path }: { readonly origin: string; readonly path: CanonicalPath },
  call: ShadowCall,
): PageRequest {
  return {
    method: 'GET',
    origin: originAt([origin], call.origin),
    ...requestPathOf(path),
    query: '',
    fields: {},
    visitor: call.visitor,
  };
}

function fileShadow(
  site: ShadowParts['site'],
  { origin, path }: Pick<Candidate, 'origin' | 'path'>,
  call: ShadowCall,
): string | undefined {
  const request = visitOf({ origin, path: path as CanonicalPath }, call);
  // A write asks only the disk, unless there is a file.
  if (!site.hasFile(request)) return undefined;
  const { winner } = site.explain(request);
  if (winner?.source !== 'disk' || winner.mount === undefined) return undefined;
  if (call.caller.bounds !== undefined) return 'A file has this path and hides the page rule.';
  return `A file of [disk.${winner.mount}] has this path and hides the page rule.`;
}
