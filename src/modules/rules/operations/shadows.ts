import { originsOf } from '../rule.ts';
import { originAt } from '../../../core/values/network/origin-pattern.ts';
import type { Problem } from '../../../core/values/failure.ts';
import { hasWildcard, requestPathOf, type CanonicalPath } from '../../../core/values/path.ts';
import type { Candidate, Rule } from '../rule.ts';
import { sortByPrecedence, lossReason } from '../matcher.ts';
import type { Reads } from '../../../core/log/store.ts';
import type { Call } from '../../../core/operations/operation.ts';
import type { SiteAccess } from '../../../core/pipeline/site-access.ts';

/** The parts by which shadowProblems finds what hides a rule. */
export interface ShadowParts {
  readonly store: Pick<Reads, 'exactRules' | 'wildcardRules'>;
  readonly site: Pick<SiteAccess, 'explain' | 'hasFile'>;
}

/** The call for which shadows are described. */
type ShadowCall = Pick<Call, 'origin' | 'visitor' | 'caller'>;

/**
 * A problem if a file or another rule with the same path hides a page rule from every visitor, or
 * if it hides another rule (docs/design/page-rules.md#invalid-values).
 */
export function shadowProblems(
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
  if (!hasWildcard(path)) return store.exactRules(origin, path);
  // A `*` at the end may stand for nothing, one for a segment for any text.
  for (const group of store.wildcardRules(origin, path.replace(/\*$/, ''))) {
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

function fileShadow(
  site: ShadowParts['site'],
  { origin, path }: Pick<Candidate, 'origin' | 'path'>,
  call: ShadowCall,
): string | undefined {
  const request = {
    method: 'GET',
    origin: originAt([origin], call.origin),
    ...requestPathOf(path as CanonicalPath),
    query: '',
    fields: {},
    visitor: call.visitor,
  };
  // A write asks only the disk, unless there is a file.
  if (!site.hasFile(request)) return undefined;
  const { winner } = site.explain(request);
  if (winner?.source !== 'disk' || winner.mount === undefined) return undefined;
  if (call.caller.bounds !== undefined) return 'A file has this path and hides the page rule.';
  return `A file of [disk.${winner.mount}] has this path and hides the page rule.`;
}
