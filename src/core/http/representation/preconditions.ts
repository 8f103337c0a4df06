import { parseHttpDate } from '../date.ts';
import type { Fields } from '../request.ts';

/** The validators of a representation (RFC 9110 §8.8). */
interface Validators {
  /** Entity tag with its quotes, and `W/` before them if it is weak. */
  readonly etag: string | undefined;
  /** Milliseconds since 1970; compared in whole seconds, as HTTP-dates are. */
  readonly lastModifiedMs: number | undefined;
  /** Whether representations in other content codings may have the same date. */
  readonly sharesDate?: boolean;
}

const entityTag = /(W\/)?("[\x21\x23-\x7e\x80-\xff]*")/y;
const betweenTags = /[\t ]*(?:,[\t ,]*|$)/y;

/**
 * Evaluates the preconditions of a GET or HEAD whose answer would be 200, in the order of RFC 9110
 * §13.2.2: `proceed` is a 200, `not_modified` a 304, `failed` a 412. A malformed date is ignored,
 * and so is a date for a representation without one (§13.1.3, §13.1.4).
 */
export function evaluatePreconditions(
  validators: Validators,
  fields: Fields,
): 'proceed' | 'not_modified' | 'failed' {
  const ifMatch = fields['if-match'];
  if (ifMatch !== undefined) {
    if (!etagListed(ifMatch, validators.etag, 'strong')) return 'failed';
  } else if (changedSince(validators, fields['if-unmodified-since']) === true) {
    return 'failed';
  }
  const ifNoneMatch = fields['if-none-match'];
  if (ifNoneMatch !== undefined) {
    return etagListed(ifNoneMatch, validators.etag, 'weak') ? 'not_modified' : 'proceed';
  }
  return changedSince(validators, fields['if-modified-since']) === false
    ? 'not_modified'
    : 'proceed';
}

/**
 * Whether If-Range (RFC 9110 §13.1.5) allows a partial answer: there is no If-Range, or it is the
 * strong entity tag of the representation, or exactly its date. As all common servers do, it
 * accepts the date as a strong validator, unless other representations share it (§8.8.2.2).
 */
export function ifRangeHolds(
  { etag, lastModifiedMs, sharesDate }: Validators,
  fields: Fields,
): boolean {
  const ifRange = fields['if-range'];
  if (ifRange === undefined) return true;
  if (ifRange.includes('"')) return ifRange === etag && !ifRange.startsWith('W/');
  if (lastModifiedMs === undefined || sharesDate === true) return false;
  return parseHttpDate(ifRange, lastModifiedMs) === wholeSeconds(lastModifiedMs);
}

/**
 * Whether an If-Match (strong comparison) or If-None-Match (weak) lists an entity tag (RFC 9110
 * §8.8.3.2). `*` matches every representation, also one without a tag. In a malformed list, only
 * the tags before the error count.
 */
export function etagListed(
  list: string,
  etag: string | undefined,
  comparison: 'strong' | 'weak',
): boolean {
  if (list === '*') return true;
  if (etag === undefined) return false;
  const weak = etag.startsWith('W/');
  if (weak && comparison === 'strong') return false;
  const opaque = weak ? etag.slice(2) : etag;
  let at = 0;
  while (at < list.length) {
    entityTag.lastIndex = at;
    const tag = entityTag.exec(list);
    if (tag !== null && tag[2] === opaque && (comparison === 'weak' || tag[1] === undefined)) {
      return true;
    }
    betweenTags.lastIndex = tag === null ? at : entityTag.lastIndex;
    if (!betweenTags.test(list)) return false;
    at = betweenTags.lastIndex;
  }
  return false;
}

/**
 * Whether the representation changed after a date of the request; undefined without one of the two
 * dates.
 */
function changedSince(
  { lastModifiedMs }: Validators,
  date: string | undefined,
): boolean | undefined {
  if (date === undefined || lastModifiedMs === undefined) return undefined;
  // The reference is not the current time: the client repeats a Last-Modified, so a two-digit year
  // must resolve as it was sent.
  const dateMs = parseHttpDate(date, lastModifiedMs);
  return dateMs === undefined ? undefined : wholeSeconds(lastModifiedMs) > dateMs;
}

function wholeSeconds(ms: number): number {
  return Math.floor(ms / 1000) * 1000;
}
