import { statusOf } from '../http/status.ts';
import type { Explanation, Tried } from '../model/explanation.ts';
import type { StoredRule } from '../model/rule.ts';
import { namedRules } from './named-rules.ts';
import { breadcrumbCandidates, resolveVisit, type Visit } from './resolve.ts';
import type { SiteRules } from './rules.ts';
import { outcomeOf, type LookedAnswer } from './source.ts';

/**
 * What a resolve rule comes to, with the looks at the keys that it leads over; the id is that of
 * the rule that decides.
 */
export function lookAlong(rules: SiteRules, first: StoredRule, visit: Visit): LookedAnswer {
  const keys = new Set<string>();
  const outcome = outcomeOf(() => {
    const { status, target } = resolveVisit(rules, first, visit, keys);
    return { status, notes: target === undefined ? [] : [`It leads to ${target}.`] };
  });
  const over = [...keys].map((key) => lookUp(rules, key, visit.origin));
  const passed = [first, ...over.flatMap(({ winner }) => winner ?? [])];
  return {
    id: passed.at(-1)?.rule.id ?? first.rule.id,
    status: outcome.status,
    notes: [...(outcome.notes ?? []), ...passed.flatMap(conditionsNote)],
    over: over.map(({ tried }) => tried),
  };
}

/** How a breadcrumb's key would be answered (contract §6), by userinterface.link.htm. */
export function explainKey(
  rules: SiteRules,
  { key, ...visit }: Visit & { readonly key: string },
): Explanation {
  const { tried, winner } = lookUp(rules, key, visit.origin);
  if (winner === undefined) {
    return { winner: null, status: statusOf.not_found, tried: [tried], notes: [] };
  }
  const { id, status, notes = [], over = [] } = lookAlong(rules, winner, visit);
  return {
    winner: { source: 'stored', ...(id !== undefined && { id }), status },
    status,
    tried: [tried, ...over],
    notes,
  };
}

function lookUp(
  rules: SiteRules,
  key: string,
  origin: string,
): { readonly tried: Tried; readonly winner: StoredRule | undefined } {
  const ordered = breadcrumbCandidates(rules, key, origin);
  const [winner] = ordered;
  return {
    tried: { source: 'stored', key, ...namedRules(ordered, {}) },
    winner: winner && rules.ruleOf(winner),
  };
}

/** What somebody who wrote conditions has to know. */
function conditionsNote({ rule }: StoredRule): readonly string[] {
  if (rule.enginedata?.when === undefined) return [];
  return [
    `The rule ${rule.id} has conditions (when), which this version does not evaluate: ` +
      'its default decides, whoever asks.',
  ];
}
