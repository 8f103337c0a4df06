import { acceptEncodingCharactersMax, acceptEncodingsKnownMax } from './limits.ts';
import { parseAccept } from './negotiation.ts';

/**
 * The content codings that are sent (RFC 9110 §8.4.1), best first where a caller has no opinion.
 */
export const codings = ['zstd', 'br', 'gzip'] as const;

/** One of the content codings. */
export type Coding = (typeof codings)[number];

/** What is there once for each coding. */
export type ByCoding<T> = Readonly<Record<Coding, T>>;

const none: readonly Coding[] = [];

/** Browsers send the same few texts again and again: what each of them comes to. */
const known = new Map<string, readonly Coding[]>();

/**
 * The codings in which a caller would rather have content than as it is, the best one first, by an
 * Accept-Encoding field (RFC 9110 §12.5.3): its weights decide, the server's order among equals. A
 * coding that weighs less than `identity` does in the field is not among them. Content as it is
 * comes after all of them, also for a caller that excludes it: an answer that a reader may have to
 * refuse helps more than a 406. No field is answered with no coding, as is one that cannot be read.
 */
export function wantedCodings(acceptEncoding: string | undefined): readonly Coding[] {
  if (acceptEncoding === undefined) return none;
  const remembered = known.get(acceptEncoding);
  if (remembered !== undefined) return remembered;
  const wanted = readWanted(acceptEncoding);
  if (acceptEncoding.length <= acceptEncodingCharactersMax) {
    if (known.size >= acceptEncodingsKnownMax) known.clear();
    known.set(acceptEncoding, wanted);
  }
  return wanted;
}

function readWanted(acceptEncoding: string): readonly Coding[] {
  const preferences = parseAccept(acceptEncoding);
  const weightOf = (...names: readonly string[]): number | undefined =>
    preferences.find(({ range }) => names.includes(range))?.q;
  const otherWeight = weightOf('*') ?? 0;
  const identityWeight = weightOf('identity') ?? 0;
  return (
    codings
      // The old name of gzip is still to be understood (§8.4.1.3).
      .map((coding) => ({ coding, q: weightOf(coding, `x-${coding}`) ?? otherWeight }))
      .filter(({ q }) => q > 0 && q >= identityWeight)
      .sort((one, other) => other.q - one.q)
      .map(({ coding }) => coding)
  );
}
