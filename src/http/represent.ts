import { pageFieldNames } from './page-fields.ts';
import { formatHttpDate } from './date.ts';
import { evaluatePreconditions, ifRangeHolds } from './preconditions.ts';
import { contentRange, multipartRanges, parseRanges, rangeBytes } from './ranges.ts';
import { replyField, withoutFields, type ByteRange, type FieldList, type Part } from './reply.ts';
import type { Fields } from './request.ts';

/** What a target has to show at the moment, its content left where it is. */
export interface Representation {
  readonly status: number;
  /** Undefined where another server has sent content without saying what it is. */
  readonly contentType: string | undefined;
  /** Entity tag with its quotes, and `W/` before them if it is weak. */
  readonly etag: string | undefined;
  /**
   * Milliseconds since 1970. Whoever makes it sees to it that it is not in the future (RFC 9110
   * §8.8.2.1).
   */
  readonly lastModifiedMs: number | undefined;
  /** The same as another server has written it. */
  readonly lastModified?: string | undefined;
  /**
   * Whether the target has other representations, in other codings, that may be of the same date:
   * it does not tell bytes of the one from bytes of the other (RFC 9110 §8.8.2.2).
   */
  readonly sharesDate?: boolean;
  /** Further fields: Cache-Control, Vary, Content-Language, Content-Encoding … */
  readonly fields: FieldList;
  readonly bytesLength: number;
}

/** What of a representation is sent. */
export interface Selection {
  readonly status: number;
  readonly fields: FieldList;
  /** In order; none when no content is sent. */
  readonly parts: readonly Part[];
  /** Bytes of all parts together. */
  readonly bytesLength: number;
}

/** What a 304 has of the fields of a 200 (RFC 9110 §15.4.5), beside ETag or Last-Modified. */
const notModifiedNames: ReadonlySet<string> = new Set([
  'cache-control',
  'content-location',
  'expires',
  'vary',
  ...pageFieldNames,
]);

/**
 * Answers a request with a representation: whole, in part, not modified, or refused by a
 * precondition. The one order is that of RFC 9110 §13.2.2. Preconditions and ranges apply to a
 * representation with status 200 alone (§13.2.1), for GET and HEAD, ranges for GET only (§14.2).
 * Fields are complete but for Date and connection fields: Content-Length is there unless the status
 * is 204 or 304 (§8.6). A HEAD gets the fields of its GET without Range, and no parts (§9.3.2).
 */
export function select(
  representation: Representation,
  { method, fields }: { readonly method: string; readonly fields: Fields },
): Selection {
  if (representation.status !== 200 || (method !== 'GET' && method !== 'HEAD')) {
    return whole(representation, method);
  }
  switch (evaluatePreconditions(representation, fields)) {
    case 'not_modified':
      return notModified(representation);
    case 'failed':
      return refused(representation, 412, []);
    case 'proceed':
  }
  const range = fields.range;
  if (range === undefined || method !== 'GET' || !ifRangeHolds(representation, fields)) {
    return whole(representation, method);
  }
  const ranges = parseRanges(range, representation.bytesLength);
  return ranges === undefined ? whole(representation, method) : inPart(representation, ranges);
}

/** Whether a request has a precondition or a range (RFC 9110 §13, §14), and may be sent less. */
export function asksForLess(fields: Fields): boolean {
  return (
    fields['if-none-match'] !== undefined ||
    fields['if-modified-since'] !== undefined ||
    fields.range !== undefined ||
    fields['if-match'] !== undefined ||
    fields['if-unmodified-since'] !== undefined
  );
}

function whole(representation: Representation, method: string): Selection {
  const { status, contentType, bytesLength } = representation;
  if (status === 304) return notModified(representation);
  if (status === 204 || status === 205) {
    const length = status === 205 ? ['Content-Length', '0'] : [];
    return without(status, [
      ...length,
      ...validatorFields(representation),
      ...representation.fields,
    ]);
  }
  const fields = contentFields(representation, contentType, bytesLength);
  if (method === 'HEAD' || bytesLength === 0) return without(status, fields);
  return { status, fields, parts: [{ first: 0, last: bytesLength - 1 }], bytesLength };
}

function inPart(representation: Representation, ranges: readonly ByteRange[]): Selection {
  const { contentType, bytesLength, etag, lastModifiedMs } = representation;
  const [only] = ranges;
  if (only === undefined) {
    return refused(representation, 416, ['Content-Range', contentRange(undefined, bytesLength)]);
  }
  if (ranges.length === 1) {
    const sent = rangeBytes(only);
    const fields = contentFields(representation, contentType, sent);
    fields.push('Content-Range', contentRange(only, bytesLength));
    return { status: 206, fields, parts: [only], bytesLength: sent };
  }
  const validator = etag ?? String(lastModifiedMs);
  const contentEncoding = replyField(representation, 'content-encoding');
  const multipart = multipartRanges(ranges, {
    contentType: contentType ?? unknownType,
    contentEncoding,
    bytesLength,
    validator,
  });
  // The pieces are of encoded content, their frame is not: each piece says it for itself.
  const framed =
    contentEncoding === undefined
      ? representation
      : { ...representation, fields: withoutFields(representation.fields, 'content-encoding') };
  return {
    status: 206,
    fields: contentFields(framed, multipart.contentType, multipart.bytesLength),
    parts: multipart.parts,
    bytesLength: multipart.bytesLength,
  };
}

/**
 * Only what a cache needs to go on with what it has; the date where no entity tag does that (RFC
 * 9110 §15.4.5).
 */
function notModified({ fields, ...validators }: Representation): Selection {
  const { etag } = validators;
  return without(304, [
    ...validatorFields(etag === undefined ? validators : { etag, lastModifiedMs: undefined }),
    ...fieldsWhere(fields, (name) => notModifiedNames.has(name)),
  ]);
}

/** Content of which nothing is known (RFC 9110 §8.3). */
const unknownType = 'application/octet-stream';

/**
 * Without content, and without the fields that speak of the content or of how long it may be kept.
 */
function refused({ fields }: Representation, status: 412 | 416, own: FieldList): Selection {
  const kept = fieldsWhere(
    fields,
    (name) => !name.startsWith('content-') && name !== 'cache-control' && name !== 'expires',
  );
  return without(status, ['Content-Length', '0', ...own, ...kept]);
}

function without(status: number, fields: FieldList): Selection {
  return { status, fields, parts: [], bytesLength: 0 };
}

function contentFields(
  representation: Representation,
  contentType: string | undefined,
  bytesLength: number,
): string[] {
  const fields = contentType === undefined ? [] : ['Content-Type', contentType];
  fields.push('Content-Length', String(bytesLength));
  fields.push(...validatorFields(representation));
  if (representation.status === 200) fields.push('Accept-Ranges', 'bytes');
  fields.push(...representation.fields);
  return fields;
}

function validatorFields({
  etag,
  lastModifiedMs,
  lastModified,
}: Pick<Representation, 'etag' | 'lastModifiedMs' | 'lastModified'>): string[] {
  const fields: string[] = [];
  if (etag !== undefined) fields.push('ETag', etag);
  if (lastModifiedMs !== undefined) {
    fields.push('Last-Modified', lastModified ?? formatHttpDate(lastModifiedMs));
  }
  return fields;
}

function fieldsWhere(fields: FieldList, wanted: (lowerCaseName: string) => boolean): string[] {
  return fields.filter((_, at) => wanted(fields[at - (at % 2)]?.toLowerCase() ?? ''));
}
