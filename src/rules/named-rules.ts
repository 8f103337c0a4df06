import type { Fields } from '../http/request.ts';
import { explainCandidatesMax } from '../model/limits.ts';
import type { TriedCandidate } from '../model/explanation.ts';
import { waitingOrigin, type Candidate } from '../model/rule.ts';
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

/** Rules that would cover a path, and match nothing while their origin waits in `_unknowns_`. */
export function waitingRules(found: readonly Candidate[]): readonly TriedCandidate[] {
  return found.slice(0, explainCandidatesMax).map(({ id, kind, path }) => ({
    id,
    kind,
    origin: waitingOrigin,
    path,
    lost: { code: 'waits', says: waits },
  }));
}

const waits = 'It matches nothing, for its origin is not valid and waits in _unknowns_.';
