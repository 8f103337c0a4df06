import { createHash } from 'node:crypto';
import type { ByCoding, Coding } from '../http/coding.ts';
import { isCompressible } from '../http/compressible.ts';
import { etagListed } from '../http/preconditions.ts';
import { isEmptyStatus } from '../http/reply.ts';
import { codedBytesMin } from '../model/limits.ts';
import { holdPage, type HeldPage, type Page } from '../http/held-page.ts';

/** A page in one content coding, which may not have been made yet. */
export interface Variant {
  readonly coding: Coding;
  /** Undefined until it is made, and again when it was let go of. */
  page: HeldPage | undefined;
  /** Why it is not there: nobody has asked for it, it is being made, or it is not worth it. */
  absence: 'unasked' | 'begun' | 'useless';
}

/** The variants of a page, none of them made. */
export function newVariants(): ByCoding<Variant> {
  const variant = (coding: Coding): Variant => ({ coding, page: undefined, absence: 'unasked' });
  return { zstd: variant('zstd'), br: variant('br'), gzip: variant('gzip') };
}

/** Whether a page may become smaller in a coding, and can be told from its variants by a tag. */
export function isWorthCoding({ representation, bytes }: Page): boolean {
  const { status, contentType, etag } = representation;
  return (
    bytes.length >= codedBytesMin &&
    etag !== undefined &&
    !isEmptyStatus(status) &&
    isCompressible(contentType)
  );
}

/**
 * A page with its bytes in a coding, under an entity tag of its own (RFC 9110 §8.8.3.3); undefined
 * where that saves less than a tenth of them.
 */
export function variantPage(
  { representation, bytes, source }: HeldPage,
  coding: Coding,
  coded: Buffer,
): HeldPage | undefined {
  if (coded.length > 0.9 * bytes.length) return undefined;
  const hash = createHash('sha256').update(coded).digest('base64url').slice(0, tagHashCharacters);
  return holdPage(
    {
      representation: {
        ...representation,
        etag: `${tagStart(representation.etag ?? '""', coding)}${hash}"`,
        fields: ['Content-Encoding', coding, ...representation.fields],
        bytesLength: coded.length,
      },
      bytes: coded,
    },
    source,
  );
}

/**
 * A page in a coding whose bytes are not at hand, for a reader who has it: what If-None-Match (RFC
 * 9110 §13.1.2) lists says of which state and coding it is, and a 304 takes no more. Undefined
 * where it lists no such tag.
 */
export function knownByTag(
  { representation, ...page }: HeldPage,
  coding: Coding,
  ifNoneMatch: string | undefined,
): HeldPage | undefined {
  const { etag, status } = representation;
  if (ifNoneMatch === undefined || etag === undefined || status !== 200) return undefined;
  const start = tagStart(etag, coding);
  const at = ifNoneMatch.indexOf(start);
  if (at === -1) return undefined;
  const known = ifNoneMatch.slice(at, at + start.length + tagHashCharacters + 1);
  // Only what is listed for sure comes to a 304: the bytes here are not those of the tag.
  if (!known.endsWith('"') || !etagListed(ifNoneMatch, known, 'weak')) return undefined;
  return { ...page, representation: { ...representation, etag: known } };
}

const tagHashCharacters = 12;

/**
 * What the entity tags of a page in a coding begin with. They end with a hash of the compressed
 * bytes: another version of the compressor may make other ones of the same page (RFC 9110 §8.8.1).
 */
function tagStart(identityTag: string, coding: Coding): string {
  return `${identityTag.slice(0, -1)}-${coding}.`;
}
