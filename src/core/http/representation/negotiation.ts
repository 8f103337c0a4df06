import { splitList, trimOws } from '../syntax.ts';
import { type MediaType, parseMediaType, parseParameters } from './mediatype.ts';

/** The content codings that the server applies (RFC 9110 §8.4.1), in its order of preference. */
export const codings = ['zstd', 'br', 'gzip'] as const;
const none: readonly Coding[] = [];
const parsePreferredCached = cachedByValue(parsePreferred);

/**
 * Elements of an Accept, Accept-Language or Accept-Encoding field; the server ignores later ones.
 */
const acceptElementsMax = 64;

/** Values of Accept and Accept-Encoding that are cached in parsed form, and the longest of them. */
export const acceptValuesCachedMax = 64;
const acceptValueCharactersMax = 256;

/** One element of an Accept, Accept-Language or Accept-Encoding field. */
interface Preference {
  /** Media range, language range or coding, lower case. */
  readonly range: string;
  /** Parameters of a media range, without its weight. */
  readonly parameters: ReadonlyMap<string, string>;
  /** The weight, 0 (not acceptable) to 1. */
  readonly q: number;
}

/** A client's preference among languages. */
export interface LanguagePreference {
  /**
   * Returns the rank of a language tag, or of content without one (undefined); a lower rank is
   * better. Returns undefined for a language that the client excludes: such content is the last
   * resort.
   */
  rank(lang: string | undefined): number | undefined;
}

/** A weight as in RFC 9110 §12.4.2, or without the leading zero, as Java's own client writes it. */
const weightPattern = /^(?:[01](?:\.\d{0,3})?|\.\d{1,3})$/;

const languageRange = /^[a-z]{1,8}(?:-[a-z0-9]{1,8}){0,7}$/;

const anyLanguage: LanguagePreference = { rank: (lang) => (lang === undefined ? 0 : 2) };

/**
 * Parses the elements of a field with weights (RFC 9110 §12.4.2). The heaviest comes first, equal
 * ones stay in order. Malformed elements, and those after the first acceptElementsMax, are left
 * out.
 */
export function parseAccept(value: string): readonly Preference[] {
  const elements = splitList(value, ',')?.slice(0, acceptElementsMax) ?? [];
  return elements
    .map(parsePreference)
    .filter((preference) => preference !== undefined)
    .sort((one, other) => other.q - one.q);
}

/**
 * Returns the media type that an Accept field prefers (RFC 9110 §12.5.1): the most specific
 * matching range gives a type its weight, the heaviest type wins, and the first one on a tie.
 * Returns undefined if the field accepts none. No Accept field, or one without a valid element,
 * accepts everything.
 */
export function preferredType(
  accept: string | undefined,
  types: readonly string[],
): string | undefined {
  const preferences = accept === undefined ? [] : parseAccept(accept);
  if (preferences.length === 0) return types[0];
  return heaviest(types, (type) => typeWeight(preferences, type));
}

/** Whether an Accept field accepts a media type (RFC 9110 §12.5.1). */
export function acceptsType(accept: string | undefined, type: string): boolean {
  return preferredType(accept, [type]) !== undefined;
}

/**
 * Whether an Accept field prefers HTML to plain text: true for a browser, false for a client that
 * accepts everything equally.
 */
export function prefersHtml(accept: string | undefined): boolean {
  return accept !== undefined && prefersHtmlCached(accept);
}

const prefersHtmlCached = cachedByValue(
  (accept) => preferredType(accept, ['text/plain', 'text/html']) === 'text/html',
);

/**
 * Returns a function of a field's value that caches its results: browsers send a few values again
 * and again.
 */
function cachedByValue<T>(parse: (value: string) => T): (value: string) => T {
  const results = new Map<string, T>();
  return (value) => {
    const cached = results.get(value);
    if (cached !== undefined) return cached;
    const result = parse(value);
    if (value.length <= acceptValueCharactersMax) {
      if (results.size >= acceptValuesCachedMax) results.clear();
      results.set(value, result);
    }
    return result;
  };
}

/**
 * Parses an Accept-Language field, ignoring case (docs/design/page-rules.md#matching, RFC 9110
 * §12.5.4). The ranks, from best to worst:
 * 1. the tags of the field by weight, equal ones in order. Directly after a tag come its truncated
 *    forms of lookup (RFC 4647 §3.4): `zh-hant-tw`, `zh-hant`, `zh`. A tag that occurs twice has
 *    the better rank;
 * 2. content without a language;
 * 3. languages that begin with a tag of 1, such as de-AT for `de` (RFC 4647 §3.3.1);
 * 4. all other languages.
 *
 * A tag with weight 0 excludes itself and the languages that begin with it, except those that begin
 * with a longer tag of 1. `*;q=0` excludes rank 4. Any other `*` has no effect: lookup skips it.
 */
export function languagePreference(acceptLanguage: string | undefined): LanguagePreference {
  if (acceptLanguage === undefined || acceptLanguage === '*') return anyLanguage;
  const preferences = parseAccept(acceptLanguage);
  const excluded = new Set(preferences.filter(({ q }) => q === 0).map(({ range }) => range));
  const ranks = new Map<string, number>();
  for (const { range, q } of preferences) {
    if (q === 0 || !languageRange.test(range)) continue;
    for (const tag of withShorterTags(range)) {
      if (!ranks.has(tag)) ranks.set(tag, ranks.size);
    }
  }
  const noLanguage = ranks.size;
  return {
    rank(lang) {
      if (lang === undefined) return noLanguage;
      const wanted = lang.toLowerCase();
      for (const tag of withShorterTags(wanted)) {
        if (excluded.has(tag)) return undefined;
        const rank = ranks.get(tag);
        if (rank !== undefined) return tag === wanted ? rank : noLanguage + 1;
      }
      return excluded.has('*') ? undefined : noLanguage + 2;
    },
  };
}

/** Returns the language tag with the highest weight, the first of equal ones, in lower case. */
export function preferredLanguage(acceptLanguage: string | undefined): string | undefined {
  if (acceptLanguage === undefined) return undefined;
  return parseAccept(acceptLanguage).find(({ range, q }) => q > 0 && range !== '*')?.range;
}

function heaviest(
  choices: readonly string[],
  weightOf: (choice: string) => number,
): string | undefined {
  let best: string | undefined;
  let bestWeight = 0;
  for (const choice of choices) {
    const weight = weightOf(choice);
    if (weight > bestWeight) [best, bestWeight] = [choice, weight];
  }
  return best;
}

function typeWeight(preferences: readonly Preference[], type: string): number {
  const mediaType = parseMediaType(type);
  if (mediaType === undefined) return 0;
  let weight = 0;
  let closest = -1;
  for (const preference of preferences) {
    const closeness = specificity(preference, mediaType);
    if (closeness > closest) [weight, closest] = [preference.q, closeness];
  }
  return weight;
}

/**
 * Returns how closely a media range matches a type, -1 for no match. `*` alone matches any type.
 */
function specificity({ range, parameters }: Preference, { type, ...actual }: MediaType): number {
  if (range === '*/*' || range === '*') return 0;
  if (range.endsWith('/*')) return type.startsWith(range.slice(0, -1)) ? 1 : -1;
  if (range !== type) return -1;
  for (const [name, value] of parameters) {
    if (actual.parameters.get(name)?.toLowerCase() !== value.toLowerCase()) return -1;
  }
  return 2 + parameters.size;
}

function parsePreference(element: string): Preference | undefined {
  const end = element.indexOf(';');
  const range = trimOws(end === -1 ? element : element.slice(0, end)).toLowerCase();
  if (range === '') return undefined;
  const all = parseParameters(element, end === -1 ? element.length : end);
  const weight = all?.get('q');
  if (all === undefined || weight === undefined) return all && { range, parameters: all, q: 1 };
  if (!weightPattern.test(weight)) return undefined;
  const parameters = new Map(all);
  parameters.delete('q');
  return { range, parameters, q: Math.min(1, Number(weight)) };
}

/** Returns a tag and its progressively truncated forms, longest first (RFC 4647 §3.4). */
function withShorterTags(tag: string): readonly string[] {
  const tags = [tag];
  let subtags = tag.split('-');
  while (subtags.length > 1) {
    // A subtag of one character introduces the next one, so it cannot be the last.
    const end = subtags.at(-2)?.length === 1 && subtags.length > 2 ? -2 : -1;
    subtags = subtags.slice(0, end);
    tags.push(subtags.join('-'));
  }
  return tags;
}

/** Whether Prefer fields contain `handling=strict` (RFC 7240 §4.4). */
export function isStrictPreferred(...prefer: readonly (string | undefined)[]): boolean {
  const wanted = prefer.flatMap((field) => field?.split(/[,;]/) ?? []);
  return wanted.some((one) => one.replaceAll(/[ \t"]/g, '').toLowerCase() === 'handling=strict');
}

/** One of the content codings. */
export type Coding = (typeof codings)[number];

/** A value for each content coding. */
export type ByCoding<T> = Readonly<Record<Coding, T>>;

/**
 * Returns the codings that an Accept-Encoding field (RFC 9110 §12.5.3) prefers to `identity`, in
 * order of weight, and in the server's order among equals. A coding that weighs less than
 * `identity` is not in the list. Identity comes after all of them, even if the field excludes it:
 * an answer that a client may refuse helps it more than a 406. Without a field, or with a malformed
 * one, the list is empty.
 */
export function preferredCodings(acceptEncoding: string | undefined): readonly Coding[] {
  return acceptEncoding === undefined ? none : parsePreferredCached(acceptEncoding);
}

function parsePreferred(acceptEncoding: string): readonly Coding[] {
  const preferences = parseAccept(acceptEncoding);
  const weightOf = (...names: readonly string[]): number | undefined =>
    preferences.find(({ range }) => names.includes(range))?.q;
  const otherWeight = weightOf('*') ?? 0;
  const identityWeight = weightOf('identity') ?? 0;
  return (
    codings
      // `x-gzip` is equivalent to gzip (§8.4.1.3).
      .map((coding) => ({ coding, q: weightOf(coding, `x-${coding}`) ?? otherWeight }))
      .filter(({ q }) => q > 0 && q >= identityWeight)
      .sort((one, other) => other.q - one.q)
      .map(({ coding }) => coding)
  );
}
