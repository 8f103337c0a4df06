import { parseHttpDate } from './date.ts';
import type { Fields } from './request.ts';

/** What tells one state of a representation from another (RFC 9110 §8.8). */
interface Validators {
  /** Entity tag with its quotes, and `W/` before them if it is weak. */
  readonly etag: string | undefined;
  /** Milliseconds since 1970; compared in whole seconds, as HTTP-dates are. */
  readonly lastModifiedMs: number | undefined;
  /** Whether representations in other codings may be of the same date. */
  readonly sharesDate?: boolean;
}

const entityTag = /(W\/)?("[\x21\x23-\x7e\x80-\xff]*")/y;
const betweenTags = /[\t ]*(?:,[\t ,]*|$)/y;

/**
 * Whether a GET or HEAD whose answer would be 200 is to be answered so, or by 304 or 412: the
 * preconditions in the order of RFC 9110 §13.2.2. A date that is none, or that has nothing to be
 * compared with, is ignored (§13.1.3, §13.1.4).
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
 * Whether a Range is to be honoured (RFC 9110 §13.1.5): there is no If-Range, or it is the strong
 * entity tag of the representation, or exactly its date, which is taken for a strong validator as
 * every common server takes it, unless representations share it (§8.8.2.2).
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
 * Whether an If-Match (strong comparison) or If-None-Match (weak) names an entity tag (RFC 9110
 * §8.8.3.2), `*` naming any there is, also for a representation without one. Reading of a malformed
 * list ends where it is malformed.
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
 * Whether there was a change after a date of the request; undefined when there is nothing to
 * compare.
 */
function changedSince(
  { lastModifiedMs }: Validators,
  date: string | undefined,
): boolean | undefined {
  if (date === undefined || lastModifiedMs === undefined) return undefined;
  // The clock plays no part: two-digit years are read as a repetition of what was sent as
  // Last-Modified.
  const dateMs = parseHttpDate(date, lastModifiedMs);
  return dateMs === undefined ? undefined : wholeSeconds(lastModifiedMs) > dateMs;
}

function wholeSeconds(ms: number): number {
  return Math.floor(ms / 1000) * 1000;
}
