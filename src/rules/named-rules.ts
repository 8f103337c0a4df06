import type { Fields } from '../http/request.ts';
import { explainCandidatesMax } from '../model/limits.ts';
import type { Candidate } from '../model/rule.ts';
import { lossTo } from './matcher.ts';
import type { Look } from './source.ts';

/** Rules in the order in which they win, each but the first with what it lost to the first by. */
export function namedRules(
  ordered: readonly Candidate[],
  fields: Fields,
): Pick<Look, 'candidates' | 'omitted'> {
  const [winner] = ordered;
  const omitted = ordered.length - explainCandidatesMax;
  return {
    candidates: ordered.slice(0, explainCandidatesMax).map((rule) => {
      const { id, kind, origin, path } = rule;
      const lost = winner && lossTo(winner, rule, fields);
      return { id, kind, origin, path, ...(lost && { lost }) };
    }),
    ...(omitted > 0 && { omitted }),
  };
}
