import type { Readable } from 'node:stream';
import type { Cancellation, Failure, FailureCode } from '../values/failure.ts';
import type { ReuseClient } from '../values/lazy-packages.ts';

/** The HTTP status of each failure code: the only such table (docs/design/failures.md#failures). */
export const statusOf: Readonly<Record<FailureCode, number>> = {
  invalid: 400,
  unauthenticated: 401,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  precondition_failed: 412,
  too_large: 413,
  unprocessable: 422,
  rate_limited: 429,
  internal: 500,
  bad_gateway: 502,
  gateway_timeout: 504,
  unavailable: 503,
  storage_full: 507,
};

/** Header fields of an answer as a flat list: name, value, name, value. */
export type FieldList = readonly string[];

/** A range of a file, with its first and last byte included (RFC 9110 §14.1.2). */
export interface ByteRange {
  readonly first: number;
  readonly last: number;
}

/**
 * A part of an answer's content: literal bytes (multipart framing), or a range of the
 * representation.
 */
export type Part = Buffer | ByteRange;

/** An open file with the content of an answer. The sender of the answer closes it. */
export interface FileSource {
  /**
   * Fills the buffer from a position of the file; resolves to the bytes read, 0 at the end of the
   * file.
   */
  read(buffer: Buffer, position: number): Promise<number>;
  close(): Promise<void>;
}

/**
 * The content of an answer. The sender of the answer destroys a `stream` when the client
 * disconnects.
 */
export type Body =
  | { readonly kind: 'none' }
  | { readonly kind: 'bytes'; readonly bytes: Buffer }
  | {
      readonly kind: 'file';
      readonly file: FileSource;
      readonly parts: readonly Part[];
      readonly bytesLength: number;
    }
  | {
      readonly kind: 'stream';
      readonly stream: Readable;
      readonly bytesLength: number | undefined;
      /** Trailer fields (RFC 9110 §6.5), complete once the content has ended. */
      readonly trailers?: () => FieldList;
    };

/**
 * The cache status of an answer: a fresh entry (`hit`), a stale entry, an entry that the source
 * confirmed (`revalidated`), no entry (`miss`), or a request that bypasses the cache (`pass`).
 */
export type CacheOutcome = 'hit' | 'stale' | 'revalidated' | 'miss' | 'pass';

/** The client of one request: where its interim answers go, and when it stops waiting. */
export interface Recipient {
  /** Aborts when the client no longer waits for the answer. */
  readonly signal: Cancellation;
  /**
   * Sends an interim answer (RFC 9110 §15.2) with a status and fields; the status is neither 100
   * nor 101.
   */
  readonly interim?: ((status: number, fields: FieldList) => void) | undefined;
  /** Gets the time from the request to a source, if there is one, until the head of its answer. */
  readonly sourceAnswered?: ((ms: number) => void) | undefined;
}

/** An answer, independent of its connection and HTTP version. */
export interface Reply {
  readonly status: number;
  /**
   * All fields except Connection, Server-Timing and framing. Content-Length is present if the
   * length is known; Date only if it differs from the current time.
   */
  readonly fields: FieldList;
  readonly body: Body;
  /** Fields for this client only, which the cache does not store and adds to no other answer. */
  readonly ownFields?: FieldList;
  /**
   * The part of Waymark that made the answer, for Server-Timing and the access log: `disk:<name>`,
   * `rule:<id>` or `none` (docs/design/requests.md#precedence).
   */
  readonly source: string;
  /** The id of the failure in the answer; the log has the same id. */
  readonly failureId?: string;
  /** Why the answer is a refusal or a failure: the key of an access rule, or the failure's code. */
  readonly reason?: string;
  /** Undefined for an answer that passed no cache. */
  readonly cache?: CacheOutcome;
  /**
   * True if every request for the same target, with the same values of the fields in Vary, gets the
   * same answer, until the log or the configuration changes or the checks of files on disk expire.
   */
  readonly isReusable?: true;
  /** True if only some visitors may see the answer. */
  readonly isPrivate?: true;
  /**
   * Whether a client may get a reusable answer that only some visitors may see; called before each
   * reuse. It tells what is known at once: a client that it refuses gets a new decision.
   */
  readonly admits?: ((client: ReuseClient) => boolean) | undefined;
  /**
   * Whether a reusable answer is still current at a time, in milliseconds since 1970; called before
   * each reuse. A request with Cache-Control skips reuse, so that the cache decides again.
   */
  readonly isCurrent?: ((nowMs: number) => boolean) | undefined;
  /**
   * Makes the same answer with a nonce in its content (CSP 3 §2.3), without validators, because no
   * cache may send it again. Undefined for content without a place for one.
   */
  readonly withNonce?: ((nonce: string) => Promise<Reply>) | undefined;
  /**
   * Fields of the answer that no setting takes away, such as those that keep an upload from running
   * as a page of the site (`guardedFields`).
   */
  readonly guards?: FieldList;
}

/**
 * An answer that only some visitors may see: no shared cache stores it (RFC 9111 §5.2.2.7), and it
 * is reused only if it says for whom.
 */
export function privateReply(given: Reply): Reply {
  const { isReusable: _reusable, isCurrent: _current, ...once } = given;
  const reply: Reply = { ...(given.admits === undefined ? once : given), isPrivate: true };
  const directives = fieldLines(reply.fields, 'cache-control')
    .join()
    .split(',')
    .map((directive) => directive.trim())
    .filter((directive) => directive !== '' && !sharedDirective.test(directive));
  const isStored = !directives.some((directive) => /^no-store$/i.test(directive));
  const value = [...(isStored ? ['private'] : []), ...directives].join(', ');
  const kept = reply.fields.filter((_, at) => !isCacheControl(reply.fields[at - (at % 2)] ?? ''));
  return { ...reply, fields: [...kept, 'Cache-Control', value] };
}

const sharedDirective = /^(?:public|private|s-maxage|proxy-revalidate)(?:[=\s]|$)/i;

/** An answer without content. */
export const noBody: Body = { kind: 'none' };

/** Closes the file or stream of an answer that will not be sent. */
export async function discard({ body }: Pick<Reply, 'body'>): Promise<void> {
  if (body.kind === 'stream') body.stream.destroy();
  if (body.kind === 'file') await body.file.close();
}

/** Changes a reply, and what it becomes with a nonce. */
export function changedReply(reply: Reply, change: (reply: Reply) => Reply): Reply {
  const { withNonce } = reply;
  const changed = change(reply);
  if (withNonce === undefined) return changed;
  return { ...changed, withNonce: async (nonce) => change(await withNonce(nonce)) };
}

/** Returns the value of a field by its lower-case name; undefined without the field. */
export function replyField({ fields }: Pick<Reply, 'fields'>, name: string): string | undefined {
  for (let at = 0; at < fields.length; at += 2) {
    if (isNamed(fields[at], name)) return fields[at + 1];
  }
  return undefined;
}

/** Returns the values of a field by its lower-case name, one for each field line. */
export function fieldLines(fields: FieldList, name: string): readonly string[] {
  let lines: string[] | undefined;
  for (let at = 0; at + 1 < fields.length; at += 2) {
    if (isNamed(fields[at], name)) (lines ??= []).push(fields[at + 1] ?? '');
  }
  return lines ?? noLines;
}

const noLines: readonly string[] = [];

/** Whether a field name equals a lower-case name, ignoring case. */
function isNamed(field: string | undefined, name: string): boolean {
  return field?.length === name.length && field.toLowerCase() === name;
}

/** Whether answers of a status have no content (RFC 9110 §15.3.5, §15.3.6, §15.4.5). */
export function isEmptyStatus(status: number): boolean {
  return status === 204 || status === 205 || status === 304;
}

/** Returns the fields except those with the given lower-case names. */
export function withoutFields(fields: FieldList, ...names: readonly string[]): FieldList {
  const isLeftOut = (field: string | undefined): boolean =>
    names.some((name) => isNamed(field, name));
  return fields.filter((_, at) => !isLeftOut(fields[at - (at % 2)]));
}

/**
 * Changed fields, with guards where the change has taken them away or weakened them: another policy
 * stays beside that of a guard, because browsers enforce all of them (CSP 3 §2.2.2), and a download
 * may have a name.
 */
export function guardedFields(changed: FieldList, guards: FieldList): FieldList {
  let fields = changed;
  for (let at = 0; at + 1 < guards.length; at += 2) {
    const [name = '', value = ''] = [guards[at], guards[at + 1]];
    const lowerName = name.toLowerCase();
    const lines = fieldLines(fields, lowerName);
    if (lowerName === 'content-security-policy') {
      if (!lines.includes(value)) fields = [...fields, name, value];
      continue;
    }
    const [line = ''] = lines;
    const isNamed = lowerName === 'content-disposition' && line.startsWith(`${value};`);
    if (lines.length === 1 && (line === value || isNamed)) continue;
    fields = [...withoutFields(fields, lowerName), name, value];
  }
  return fields;
}

/**
 * Whether a field tells caches what to store: Cache-Control, those of delivery networks (RFC 9213
 * §2.1), Surrogate-Control, Edge-Control of Akamai, and X-Accel-Expires of nginx.
 */
export function isCacheControl(name: string): boolean {
  return cacheControl.test(name);
}

const cacheControl = /(?:^|-)cache-control$|^(?:surrogate-control|edge-control|x-accel-expires)$/i;

/** Fields without those that tell a cache, a proxy or a delivery network what to store. */
export function withoutCaching(fields: readonly string[]): readonly string[] {
  return fields.filter((_, at) => {
    const name = fields[at - (at % 2)] ?? '';
    return !isCacheControl(name) && !/^(?:expires|age)$/i.test(name);
  });
}

/**
 * Returns the fields with one Vary (RFC 9110 §12.5.5) that names the given request fields and those
 * that the fields name already. `*` replaces all names; several Vary fields become one.
 */
export function withVary(fields: FieldList, ...names: readonly string[]): FieldList {
  if (replyField({ fields }, 'vary') === undefined) return [...fields, ...varyOf(names)];
  const others: string[] = [];
  const named = new Map<string, string>();
  const add = (name: string): void => {
    const lower = name.toLowerCase();
    if (name !== '' && !named.has(lower)) named.set(lower, name);
  };
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const [name = '', value = ''] = [fields[at], fields[at + 1]];
    if (name.toLowerCase() !== 'vary') others.push(name, value);
    else for (const one of value.split(',')) add(one.trim());
  }
  names.forEach(add);
  return [...others, ...varyOf(named.has('*') ? ['*'] : [...named.values()])];
}

function varyOf(names: readonly string[]): FieldList {
  return names.length === 0 ? [] : ['Vary', names.join(', ')];
}

/** Returns the HTTP status of a failure. */
export function statusFor({ code, status }: Failure): number {
  return status ?? statusOf[code];
}
