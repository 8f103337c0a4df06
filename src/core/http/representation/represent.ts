import { pageFieldNames } from '../content/page.ts';
import { formatHttpDate } from '../date.ts';
import { type ByteRange, type FieldList, type Part, replyField, withoutFields } from '../reply.ts';
import type { Fields } from '../request.ts';
import { evaluatePreconditions, ifRangeHolds } from './preconditions.ts';
import { contentRange, multipartRanges, parseRanges, rangeBytes } from './ranges.ts';

/** The representation of a target, without its content. */
export interface Representation {
  readonly status: number;
  /** Undefined if another server sent content without a Content-Type. */
  readonly contentType: string | undefined;
  /** Entity tag with its quotes, and `W/` before them if it is weak. */
  readonly etag: string | undefined;
  /**
   * Milliseconds since 1970. The maker of a representation never sets a time in the future (RFC
   * 9110 §8.8.2.1).
   */
  readonly lastModifiedMs: number | undefined;
  /** The text of Last-Modified that another server sent. */
  readonly lastModified?: string | undefined;
  /**
   * Whether representations in other content codings may have the same date, so that the date does
   * not identify the bytes (RFC 9110 §8.8.2.2).
   */
  readonly sharesDate?: boolean;
  /** Further fields: Cache-Control, Vary, Content-Language, Content-Encoding … */
  readonly fields: FieldList;
  readonly bytesLength: number;
}

/** The status, fields and content of an answer with a representation. */
export interface Selection {
  readonly status: number;
  readonly fields: FieldList;
  /** In order; empty for an answer without content. */
  readonly parts: readonly Part[];
  /** Bytes of all parts together. */
  readonly bytesLength: number;
}

/**
 * The fields of a 200 that its 304 repeats (RFC 9110 §15.4.5). `notModified` adds ETag or
 * Last-Modified; a disk mount adds its own fields afterwards (files/mount-replies.ts).
 */
const notModifiedNames: ReadonlySet<string> = new Set([
  'cache-control',
  'content-location',
  'expires',
  'vary',
  ...pageFieldNames,
]);

/**
 * Selects the answer to a request for a representation: whole (200), partial (206), not modified
 * (304), a failed precondition (412), or ranges outside the content (416), in the order of RFC 9110
 * §13.2.2. Preconditions and ranges apply only to a
 * representation with status 200 (§13.2.1) and to GET and HEAD, ranges only to GET (§14.2). The
 * fields are complete except for Date and connection fields; Content-Length is present unless the
 * status is 204 or 304 (§8.6). A HEAD gets the fields of its GET without Range, and no parts
 * (§9.3.2).
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

/** Whether a request has a precondition or a range (RFC 9110 §13, §14). */
export function hasPreconditionOrRange(fields: Fields): boolean {
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
    return withoutContent(status, [
      ...length,
      ...validatorFields(representation),
      ...representation.fields,
    ]);
  }
  const fields = contentFields(representation, contentType, bytesLength);
  if (method === 'HEAD' || bytesLength === 0) return withoutContent(status, fields);
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
  // The parts are encoded, the multipart frame is not: each part has its own Content-Encoding.
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
 * Makes the 304 (RFC 9110 §15.4.5): the ETag (Last-Modified if there is none) and the fields in
 * `notModifiedNames`.
 */
function notModified({ fields, ...validators }: Representation): Selection {
  const { etag } = validators;
  return withoutContent(304, [
    ...validatorFields(etag === undefined ? validators : { etag, lastModifiedMs: undefined }),
    ...fieldsWhere(fields, (name) => notModifiedNames.has(name)),
  ]);
}

/** The type of content without a Content-Type (RFC 9110 §8.3). */
const unknownType = 'application/octet-stream';

/**
 * Makes a 412 or 416: without content, and without the fields that describe the content or its
 * caching.
 */
function refused({ fields }: Representation, status: 412 | 416, own: FieldList): Selection {
  const others = fieldsWhere(
    fields,
    (name) => !name.startsWith('content-') && name !== 'cache-control' && name !== 'expires',
  );
  return withoutContent(status, ['Content-Length', '0', ...own, ...others]);
}

function withoutContent(status: number, fields: FieldList): Selection {
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
