import type { State } from './ledger.ts';

/**
 * An Accept-Language and its ranking of languages (RFC 9110 §12.5.4,
 * docs/design/page-rules.md#matching).
 */
interface Wish {
  /** Groups of equal languages, the best first; null means no language. */
  readonly best: readonly (readonly (string | null)[])[];
  /** Languages that lose against every other one. */
  readonly never: readonly string[];
}

const none = [null];

/** The Accept-Language of callers; each ranks all languages of the rules. */
export const wishes: ReadonlyMap<string, Wish> = new Map<string, Wish>([
  ['de-AT, en;q=0.5', { best: [['de-AT'], ['de'], ['en'], none, ['en-GB'], ['fr']], never: [] }],
  ['en-GB;q=0.2, fr', { best: [['fr'], ['en-GB'], ['en'], none, ['de', 'de-AT']], never: [] }],
  ['de, en;q=0', { best: [['de'], none, ['de-AT'], ['fr']], never: ['en', 'en-GB'] }],
  ['de-AT;q=0, *', { best: [none, ['de', 'en', 'en-GB', 'fr']], never: ['de-AT'] }],
  ['en, *;q=0', { best: [['en'], none, ['en-GB']], never: ['de', 'de-AT', 'fr'] }],
]);

function textOf({ fields }: State, name: string): string | undefined {
  const value = fields.get(name);
  return typeof value === 'string' ? value : undefined;
}

function isWildcard(rule: State): boolean {
  const path = textOf(rule, 'path') ?? '';
  return path.startsWith('/') && path.endsWith('*');
}

function covers(rule: State, origin: string, path: string): boolean {
  // A rule with a waiting origin matches nothing, and one with a waiting time never answers.
  if (['origin', 'from', 'until'].some((name) => rule.unknowns.has(name))) return false;
  const [ownOrigin, ownPath = ''] = [textOf(rule, 'origin'), textOf(rule, 'path')];
  if (ownOrigin !== '*' && ownOrigin !== origin) return false;
  return isWildcard(rule) ? path.startsWith(ownPath.slice(0, -1)) : path === ownPath;
}

/** Without Accept-Language, a page without a language is the best. */
function rankOf(rule: State, languages: string | undefined): number {
  const lang = textOf(rule, 'lang') ?? null;
  const wish = wishes.get(languages ?? '');
  return wish?.best.findIndex((group) => group.includes(lang)) ?? Number(lang !== null);
}

/**
 * The rule that answers for an origin and path, found by a comparison of all rules: stored pages
 * before fetched ones (docs/design/requests.md#precedence), in the order of matching.
 */
export function winnerOf(
  rules: readonly State[],
  { origin, path, languages }: { origin: string; path: string; languages: string | undefined },
): State | undefined {
  const never = wishes.get(languages ?? '')?.never ?? [];
  const isExcluded = (rule: State): boolean => never.includes(textOf(rule, 'lang') ?? '');
  const isFetched = (rule: State): boolean => textOf(rule, 'kind') === 'content.fetch';
  const number = (rule: State, name: string): number => Number(rule.fields.get(name) ?? 0);
  const designed = (rule: State): number => Date.parse(textOf(rule, 'designed_at') ?? '0000-01-01');
  // The criteria of matching: of two rules, the one with the smaller value wins.
  const order: readonly ((rule: State) => number)[] = [
    (rule) => Number(isFetched(rule)),
    (rule) => Number(isExcluded(rule)),
    (rule) => Number(textOf(rule, 'origin') === '*'),
    (rule) => Number(isWildcard(rule)),
    (rule) => -(textOf(rule, 'path') ?? '').length,
    (rule) => rankOf(rule, languages),
    (rule) => -number(rule, 'rve'),
    (rule) => -designed(rule),
    (rule) => -rule.insertedSeq,
  ];
  const compare = (one: State, other: State): number =>
    order.map((by) => by(one) - by(other)).find((difference) => difference !== 0) ?? 0;
  return rules.filter((rule) => covers(rule, origin, path)).toSorted(compare)[0];
}
