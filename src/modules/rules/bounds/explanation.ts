import { isInside, type Bounds } from '../../../core/values/bounds.ts';
import type {
  CandidateExplanation,
  ExplainedSource,
  Explanation,
  LossCode,
} from '../../../core/pipeline/explanation.ts';

/** An explanation with its first sentence. */
type SaidExplanation = Explanation & { readonly says: string };

const leftOut =
  'Files, proxies, settings and page rules outside of the bounds of this key are left out.';

/** The losses whose sentences tell of the candidate alone. */
const ownLosses: ReadonlySet<LossCode> = new Set(['waits', 'language_excluded']);

/**
 * An explanation as a bound key sees it: with the page rules inside, and without the names of what
 * else answers, hides a rule, or changes the answer.
 */
export function boundExplanation<E extends SaidExplanation>(
  { access = [], headers: _headers, ...explained }: E,
  bounds: Bounds,
): SaidExplanation & Omit<E, keyof SaidExplanation> {
  const tried = explained.tried
    .map((source) => sourceInside(source, bounds))
    .filter(({ key, candidates }, at) => at === 0 || key === undefined || candidates.length > 0);
  const { id, source, status } = explained.winner ?? {};
  const isSeen = tried.some(({ candidates }) =>
    candidates.some((one) => one.id !== undefined && one.id === id),
  );
  const winner = isSeen && source !== undefined ? { source, id, status: status ?? null } : null;
  const asked = `The page rule ${id ?? ''} answers, for those whom the access rules let in.`;
  const answered = access.length === 0 ? explained.says : asked;
  return {
    ...explained,
    says: winner === null ? 'No page rule inside of the bounds of this key answers.' : answered,
    winner,
    status: winner === null ? null : explained.status,
    tried,
    notes: [leftOut],
  } as SaidExplanation & Omit<E, keyof SaidExplanation>;
}

function sourceInside(
  { source, key, candidates }: ExplainedSource,
  bounds: Bounds,
): ExplainedSource {
  return {
    source,
    ...(key !== undefined && { key }),
    candidates: candidates.filter((one) => isRuleInside(one, bounds)).map(withoutRival),
  };
}

function isRuleInside({ id, proxy, ...place }: CandidateExplanation, bounds: Bounds): boolean {
  return id !== undefined && proxy === undefined && isInside(bounds, place);
}

function withoutRival({ lost, ...candidate }: CandidateExplanation): CandidateExplanation {
  if (lost === undefined || ownLosses.has(lost.code)) {
    return { ...candidate, ...(lost && { lost }) };
  }
  return { ...candidate, lost: { code: lost.code, says: 'Another answer takes precedence.' } };
}
