import { createHash } from 'node:crypto';
import type { ByCoding, Coding } from '../../core/http/representation/coding.ts';
import { isCompressible } from '../../core/http/representation/compressible.ts';
import type { PageWithSource, Page } from '../../core/http/content/page-reply.ts';
import { etagListed } from '../../core/http/representation/preconditions.ts';
import { isEmptyStatus } from '../../core/http/reply.ts';
import { compressBytesMin } from './limits.ts';

/** A page in one content coding, which may not have been compressed yet. */
export interface PageVariant {
  readonly coding: Coding;
  /** Undefined until the page has been compressed, and after the variant was evicted. */
  page: PageWithSource | undefined;
  /** Why `page` is undefined. `not_smaller` also covers a lack of memory: it is not tried again. */
  missingReason: 'not_requested' | 'queued' | 'not_smaller';
}

/** The variants of a page that has not been compressed yet. */
export function newVariants(): ByCoding<PageVariant> {
  const variant = (coding: Coding): PageVariant => ({
    coding,
    page: undefined,
    missingReason: 'not_requested',
  });
  return { zstd: variant('zstd'), br: variant('br'), gzip: variant('gzip') };
}

/**
 * Whether a page may become smaller by compression. A page without an entity tag is not compressed:
 * its variants could not have tags of their own.
 */
export function isWorthCompressing({ representation, bytes }: Page): boolean {
  const { status, contentType, etag } = representation;
  return (
    bytes.length >= compressBytesMin &&
    etag !== undefined &&
    !isEmptyStatus(status) &&
    isCompressible(contentType)
  );
}

/**
 * A page with compressed bytes and an entity tag of its own (RFC 9110 §8.8.3.3); undefined if
 * compression saves less than a tenth.
 */
export function variantPage(
  { representation, bytes, answered }: PageWithSource,
  coding: Coding,
  compressed: Buffer,
): PageWithSource | undefined {
  if (compressed.length > 0.9 * bytes.length) return undefined;
  const digest = createHash('sha256').update(compressed).digest('base64url');
  const hash = digest.slice(0, tagHashCharacters);
  return {
    representation: {
      ...representation,
      etag: `${tagPrefix(representation.etag ?? '""', coding)}${hash}"`,
      fields: ['Content-Encoding', coding, ...representation.fields],
      bytesLength: compressed.length,
    },
    bytes: compressed,
    answered,
  };
}

/**
 * The page for a client whose If-None-Match (RFC 9110 §13.1.2) lists the tag of a variant that is
 * not in memory: the tag shows that the client has the current content in this coding, and a 304
 * needs no bytes. Undefined if it lists no such tag.
 */
export function pageByTag(
  { representation, ...page }: PageWithSource,
  coding: Coding,
  ifNoneMatch: string | undefined,
): PageWithSource | undefined {
  const { etag, status } = representation;
  if (ifNoneMatch === undefined || etag === undefined || status !== 200) return undefined;
  const prefix = tagPrefix(etag, coding);
  const at = ifNoneMatch.indexOf(prefix);
  if (at === -1) return undefined;
  const known = ifNoneMatch.slice(at, at + prefix.length + tagHashCharacters + 1);
  // The caller sends this page only as a 304, because its bytes do not belong to the tag.
  if (!known.endsWith('"') || !etagListed(ifNoneMatch, known, 'weak')) return undefined;
  return { ...page, representation: { ...representation, etag: known } };
}

const tagHashCharacters = 12;

/**
 * The beginning of the entity tags of a page in a coding. A hash of the compressed bytes follows:
 * another version of the compressor may produce other bytes of the same page, and a strong tag
 * stands for one sequence of bytes (RFC 9110 §8.8.1).
 */
function tagPrefix(identityTag: string, coding: Coding): string {
  return `${identityTag.slice(0, -1)}-${coding}.`;
}
