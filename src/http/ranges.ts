import { createHash } from 'node:crypto';
import { rangesMax } from './limits.ts';
import type { ByteRange, Part } from './reply.ts';
import { splitList } from './syntax.ts';

const rangeSpec = /^(\d*)-(\d*)$/;

/**
 * The ranges of a representation that a Range field asks for (RFC 9110 §14.1.2, §14.2), clamped to
 * its length, those that overlap or touch made one (§15.3.7.2), in the order in which they were
 * first asked for. Undefined when the field is to be ignored: an unknown unit, malformed, more than
 * rangesMax ranges, or the end of what is empty. An empty list when none of the ranges can be
 * satisfied.
 */
export function parseRanges(value: string, bytesLength: number): readonly ByteRange[] | undefined {
  const specs = rangeSpecs(value);
  if (specs.length === 0 || specs.length > rangesMax) return undefined;
  // A non-zero suffix of nothing is satisfiable (§14.1.2), but there is no first byte to name in
  // Content-Range.
  if (bytesLength === 0 && specs.some((spec) => /^-0*[1-9]/.test(spec))) return undefined;
  const ranges: ByteRange[] = [];
  for (const spec of specs) {
    const range = parseRange(spec, bytesLength);
    if (range === undefined) return undefined;
    if (range.first <= range.last) ranges.push(range);
  }
  return coalesce(ranges);
}

/** Whether a Range field is ignored because it asks for more than rangesMax ranges. */
export function asksTooMuch(value: string): boolean {
  return rangeSpecs(value).length > rangesMax;
}

/** The ranges of a Range field as they are written; none of another unit than bytes. */
function rangeSpecs(value: string): readonly string[] {
  if (!/^bytes=/i.test(value)) return [];
  return splitList(value.slice('bytes='.length), ',') ?? [];
}

/** The value of Content-Range (RFC 9110 §14.4) for a range, or for none that could be satisfied. */
export function contentRange(range: ByteRange | undefined, bytesLength: number): string {
  return `bytes ${range === undefined ? '*' : `${range.first}-${range.last}`}/${bytesLength}`;
}

/** A multipart/byteranges content (RFC 9110 §14.6). */
interface Multipart {
  readonly contentType: string;
  readonly parts: readonly Part[];
  readonly bytesLength: number;
}

/**
 * Frames ranges as multipart/byteranges. The boundary is a hash of the entity tag or other text
 * that goes with the content: it is the same for the same representation, has hexadecimal digits
 * only, and neither content nor field can come to hold it by chance.
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
    /** The coding of the bytes that the ranges are cut from; undefined for none. */
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

/** How many bytes a range has. */
export function rangeBytes({ first, last }: ByteRange): number {
  return last - first + 1;
}

/** One int-range or suffix-range, clamped; last lies before first when it cannot be satisfied. */
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
  const merged: { first: number; last: number; asked: number }[] = [];
  const ascending = ranges.map((range, asked) => ({ ...range, asked }));
  ascending.sort((one, other) => one.first - other.first);
  for (const range of ascending) {
    const before = merged.at(-1);
    if (before === undefined || range.first > before.last + 1) {
      merged.push(range);
    } else {
      before.last = Math.max(before.last, range.last);
      before.asked = Math.min(before.asked, range.asked);
    }
  }
  merged.sort((one, other) => one.asked - other.asked);
  return merged.map(({ first, last }) => ({ first, last }));
}
