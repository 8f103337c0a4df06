import { acceptEncodingCharactersMax, acceptEncodingsKnownMax } from './limits.ts';
import { parseAccept } from './negotiation.ts';

/** The content codings that the server applies (RFC 9110 §8.4.1), in its order of preference. */
export const codings = ['zstd', 'br', 'gzip'] as const;

/** One of the content codings. */
export type Coding = (typeof codings)[number];

/** A value for each content coding. */
export type ByCoding<T> = Readonly<Record<Coding, T>>;

const none: readonly Coding[] = [];

/** The parsed form of Accept-Encoding fields: browsers send a few texts again and again. */
const parsed = new Map<string, readonly Coding[]>();

/**
 * Returns the codings that an Accept-Encoding field (RFC 9110 §12.5.3) prefers to `identity`, in
 * order of weight, and in the server's order among equals. A coding that weighs less than
 * `identity` is not in the list. Identity comes after all of them, even if the field excludes it:
 * an answer that a client may refuse helps it more than a 406. Without a field, or with a malformed
 * one, the list is empty.
 */
export function preferredCodings(acceptEncoding: string | undefined): readonly Coding[] {
  if (acceptEncoding === undefined) return none;
  const cached = parsed.get(acceptEncoding);
  if (cached !== undefined) return cached;
  const wanted = parsePreferred(acceptEncoding);
  if (acceptEncoding.length <= acceptEncodingCharactersMax) {
    if (parsed.size >= acceptEncodingsKnownMax) parsed.clear();
    parsed.set(acceptEncoding, wanted);
  }
  return wanted;
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
