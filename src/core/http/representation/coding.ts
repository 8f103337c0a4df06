import { cachedByValue, parseAccept } from './negotiation.ts';

/** The content codings that the server applies (RFC 9110 §8.4.1), in its order of preference. */
export const codings = ['zstd', 'br', 'gzip'] as const;

/** One of the content codings. */
export type Coding = (typeof codings)[number];

/** A value for each content coding. */
export type ByCoding<T> = Readonly<Record<Coding, T>>;

const none: readonly Coding[] = [];

const parsePreferredCached = cachedByValue(parsePreferred);

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
