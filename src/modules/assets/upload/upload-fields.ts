import { parseDictionary, type Dictionary } from 'structured-headers';
import { Failure } from '../../../core/values/failure.ts';

/** The part of a file that a request brings (RFC 9110 §14.4, §14.5). */
export interface UploadRange {
  /** The first byte; undefined for a request that only asks how far the upload is. */
  readonly first: number | undefined;
  /** Behind the last byte. */
  readonly end: number;
  /** Bytes of the whole file. */
  readonly total: number;
}

/**
 * Parses Content-Range of an upload: `bytes 100-199/200`, or, in a request without content, a `*`
 * for the positions, which asks how much the server has. Throws `invalid` for anything else, and
 * for another Content-Length.
 */
export function contentRangeOf(
  value: string | undefined,
  contentLength: string | undefined,
): UploadRange | undefined {
  if (value === undefined) return undefined;
  const found = /^bytes (?:(\d{1,15})-(\d{1,15})|\*)\/(\d{1,15})$/i.exec(value.trim());
  if (found === null) throw invalidRange();
  const [, first, last] = found;
  const total = Number(found[3]);
  if (first === undefined) {
    if (Number(contentLength ?? 0) > 0) throw invalidRange();
    return { first: undefined, end: 0, total };
  }
  const bytes = Number(last) - Number(first) + 1;
  if (bytes < 1 || Number(last) >= total) throw invalidRange();
  if (contentLength !== undefined && Number(contentLength) !== bytes) throw invalidRange();
  return { first: Number(first), end: Number(last) + 1, total };
}

/** The failure of a Content-Range that does not describe the content. */
export function invalidRange(): Failure {
  return new Failure(
    'invalid',
    'Content-Range has to be such as bytes 100-199/200, with a Content-Length of 100.',
    { field: 'content-range' },
  );
}

/** The SHA-256 that the fields of a request say, in lower-case hex; undefined without one. */
export interface ExpectedDigests {
  /** That of the whole file. */
  readonly file: string | undefined;
  /** That of the content of this request alone, if it is a part of the file. */
  readonly part: string | undefined;
}

/**
 * The digests of Repr-Digest and Content-Digest (RFC 9530 §2, §3): the second one is about the
 * content of one message, so about the file only if the message has all of it. Ignores other
 * algorithms. Throws `invalid` for a field that cannot be parsed.
 */
export function expectedDigests(
  fields: Readonly<Record<string, string | string[] | undefined>>,
  { isPart }: { readonly isPart: boolean },
): ExpectedDigests {
  const file = digestIn('repr-digest', fields['repr-digest']);
  const content = digestIn('content-digest', fields['content-digest']);
  return isPart ? { file, part: content } : { file: file ?? content, part: undefined };
}

function digestIn(name: string, value: string | string[] | undefined): string | undefined {
  if (value === undefined) return undefined;
  let parsed: Dictionary;
  try {
    parsed = parseDictionary([value].flat().join(', '));
  } catch {
    throw invalidDigest(name);
  }
  const found: unknown = parsed.get('sha-256')?.[0];
  if (found === undefined) return undefined;
  if (!(found instanceof ArrayBuffer) || found.byteLength !== sha256Bytes) {
    throw invalidDigest(name);
  }
  return Buffer.from(found).toString('hex');
}

const sha256Bytes = 32;

function invalidDigest(name: string): Failure {
  return new Failure('invalid', `${name} has to be such as sha-256=:…:, in base64.`, {
    field: name,
  });
}
