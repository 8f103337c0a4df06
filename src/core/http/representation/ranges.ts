import { createHash } from 'node:crypto';
import type { ByteRange, Part } from '../reply.ts';
import { splitList } from '../syntax.ts';

/** Ranges of one request; with more, the server sends the whole page. */
export const rangesMax = 16;

const rangeSpec = /^(\d*)-(\d*)$/;

/**
 * Parses a Range field (RFC 9110 §14.1.2, §14.2) for a representation of a length. Returns the
 * ranges clamped to that length, in the order of the field; ranges that overlap or touch are merged
 * (§15.3.7.2). Returns undefined for a field to ignore: an unknown unit, a syntax error, more than
 * rangesMax ranges, or the start or a suffix of an empty representation. Returns an empty list if
 * no range is satisfiable.
 */
export function parseRanges(value: string, bytesLength: number): readonly ByteRange[] | undefined {
  const specs = rangeSpecs(value);
  if (specs.length === 0 || specs.length > rangesMax) return undefined;
  // A client that wants all of an empty representation, or its last bytes, gets it: Content-Range
  // cannot express that, because there is no first byte.
  if (bytesLength === 0 && specs.some((spec) => /^(?:0+-$|-0*[1-9])/.test(spec))) return undefined;
  const ranges: ByteRange[] = [];
  for (const spec of specs) {
    const range = parseRange(spec, bytesLength);
    if (range === undefined) return undefined;
    if (range.first <= range.last) ranges.push(range);
  }
  return coalesce(ranges);
}

/** Whether a Range field has more than rangesMax ranges, so that the server ignores it. */
export function hasTooManyRanges(value: string): boolean {
  return rangeSpecs(value).length > rangesMax;
}

/** Returns the unparsed ranges of a Range field; none for a unit other than bytes. */
function rangeSpecs(value: string): readonly string[] {
  if (!/^bytes=/i.test(value)) return [];
  return splitList(value.slice('bytes='.length), ',') ?? [];
}

/**
 * Returns the value of Content-Range (RFC 9110 §14.4) for a range; for undefined, the one of a 416.
 */
export function contentRange(range: ByteRange | undefined, bytesLength: number): string {
  return `bytes ${range === undefined ? '*' : `${range.first}-${range.last}`}/${bytesLength}`;
}

/** Content of type multipart/byteranges (RFC 9110 §14.6). */
interface Multipart {
  readonly contentType: string;
  readonly parts: readonly Part[];
  readonly bytesLength: number;
}

/**
 * Frames ranges as multipart/byteranges. The boundary is the hash of the representation's
 * validator, type and length: the same representation always gets the same boundary, and the
 * content cannot contain it by chance.
 */
export function multipartRanges(
  ranges: readonly ByteRange[],
  {
    contentType,
    contentEncoding,
    bytesLength,
    validator,
  }: {
    readonly contentType: string;
    /** The content coding of the representation; undefined for none. */
    readonly contentEncoding?: string | undefined;
    readonly bytesLength: number;
    readonly validator: string;
  },
): Multipart {
  const boundary = createHash('sha256')
    .update(`${validator}\n${contentType}\n${bytesLength}`)
    .digest('hex')
    .slice(0, 48);
  const coded = contentEncoding === undefined ? '' : `Content-Encoding: ${contentEncoding}\r\n`;
  const parts: Part[] = [];
  let sentBytes = 0;
  for (const range of ranges) {
    const head = Buffer.from(
      `${parts.length === 0 ? '' : '\r\n'}--${boundary}\r\nContent-Type: ${contentType}\r\n` +
        `${coded}Content-Range: ${contentRange(range, bytesLength)}\r\n\r\n`,
      'latin1',
    );
    parts.push(head, range);
    sentBytes += head.length + rangeBytes(range);
  }
  const end = Buffer.from(`\r\n--${boundary}--\r\n`, 'latin1');
  return {
    contentType: `multipart/byteranges; boundary=${boundary}`,
    parts: [...parts, end],
    bytesLength: sentBytes + end.length,
  };
}

/** Returns the number of bytes in a range. */
export function rangeBytes({ first, last }: ByteRange): number {
  return last - first + 1;
}

/**
 * Parses one int-range or suffix-range and clamps it; `last` is less than `first` if it is
 * unsatisfiable. Returns undefined on a syntax error.
 */
function parseRange(spec: string, bytesLength: number): ByteRange | undefined {
  const match = rangeSpec.exec(spec);
  if (match === null || spec === '-') return undefined;
  const [, first = '', last = ''] = match;
  if (first === '')
    return { first: Math.max(0, bytesLength - Number(last)), last: bytesLength - 1 };
  if (last !== '' && Number(last) < Number(first)) return undefined;
  return {
    first: Number(first),
    last: last === '' ? bytesLength - 1 : Math.min(Number(last), bytesLength - 1),
  };
}

function coalesce(ranges: readonly ByteRange[]): readonly ByteRange[] {
  if (ranges.length < 2) return ranges;
  const merged: { first: number; last: number; position: number }[] = [];
  const ascending = ranges.map((range, position) => ({ ...range, position }));
  ascending.sort((one, other) => one.first - other.first);
  for (const range of ascending) {
    const before = merged.at(-1);
    if (before === undefined || range.first > before.last + 1) {
      merged.push(range);
    } else {
      before.last = Math.max(before.last, range.last);
      before.position = Math.min(before.position, range.position);
    }
  }
  merged.sort((one, other) => one.position - other.position);
  return merged.map(({ first, last }) => ({ first, last }));
}
