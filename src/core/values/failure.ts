import type { ReuseClient } from './lazy-packages.ts';
import type { LimitName } from './limit.ts';

const failureCodes = [
  'invalid',
  'unauthenticated',
  'forbidden',
  'not_found',
  'method_not_allowed',
  'conflict',
  'precondition_failed',
  'too_large',
  'unprocessable',
  'rate_limited',
  'internal',
  'bad_gateway',
  'gateway_timeout',
  'unavailable',
  'storage_full',
] as const;

/** All codes of failures (docs/design/failures.md#failures). */
export type FailureCode = (typeof failureCodes)[number];

/** Whether a value is one of the codes. */
export function isFailureCode(value: unknown): value is FailureCode {
  return failureCodes.some((code) => code === value);
}

/** Details of a failure besides its code and message. */
interface FailureDetail {
  /** The invalid input field, as the caller has written it. */
  readonly field?: string;
  /** The allowed methods (RFC 9110 §15.5.6). */
  readonly allow?: readonly string[];
  readonly retryAfterSeconds?: number;
  /** The challenge of a 401 (RFC 9110 §11.6.1), if it is not that of API keys. */
  readonly challenge?: string;
  /** The supported versions of the websocket protocol (RFC 6455 §4.4). */
  readonly websocketVersion?: string;
  /** The HTTP status, if it is not that of the code. */
  readonly status?: number;
  /** The limit that a client has exceeded, if the log reports it. */
  readonly limit?: LimitName;
  /**
   * What has failed or refused, as in Server-Timing and the access log: `rule:<id>`,
   * `access:<name>`.
   */
  readonly source?: string;
  /** Why an access rule refuses: the key of its condition in the ini file. */
  readonly reason?: string;
  /** The name of a visitor whom a rule refuses, and the path to sign out, if it is known. */
  readonly signedIn?: { readonly as: string; readonly signOut: string | undefined };
  /** Further header fields of the answer, flat. */
  readonly fields?: readonly string[];
  /** True if the answer is only for the client that it goes to. */
  readonly isPrivate?: true;
  /** True if every request for the same target fails so, as Reply.isReusable. */
  readonly isReusable?: true | undefined;
  /** As Reply.admits. */
  readonly admits?: ((client: ReuseClient) => boolean) | undefined;
  /** The problems of a write that strict handling refuses. */
  readonly problems?: readonly Problem[];
  /** The URL of a page of the documentation about the failure of a server that was called. */
  readonly docs?: string;
  readonly cause?: unknown;
}

/**
 * The only error that a caller sees: `message` says what to do, and contains neither a secret nor a
 * path of this machine. Any other error is a bug and is answered as `internal`.
 */
export class Failure extends Error {
  readonly code: FailureCode;
  readonly field: string | undefined;
  readonly allow: readonly string[] | undefined;
  readonly retryAfterSeconds: number | undefined;
  readonly challenge: string | undefined;
  readonly websocketVersion: string | undefined;
  readonly status: number | undefined;
  readonly limit: LimitName | undefined;
  readonly source: string | undefined;
  readonly reason: string | undefined;
  readonly signedIn: FailureDetail['signedIn'];
  readonly fields: readonly string[] | undefined;
  readonly isPrivate: true | undefined;
  readonly isReusable: true | undefined;
  readonly admits: FailureDetail['admits'];
  readonly problems: readonly Problem[] | undefined;
  readonly docs: string | undefined;
  readonly #detail: FailureDetail;

  constructor(code: FailureCode, message: string, detail: FailureDetail = {}) {
    super(message, { cause: detail.cause });
    this.name = 'Failure';
    this.code = code;
    this.field = detail.field;
    this.allow = detail.allow;
    this.retryAfterSeconds = detail.retryAfterSeconds;
    this.challenge = detail.challenge;
    this.websocketVersion = detail.websocketVersion;
    this.status = detail.status;
    this.limit = detail.limit;
    this.source = detail.source;
    this.reason = detail.reason;
    this.signedIn = detail.signedIn;
    this.fields = detail.fields;
    this.isPrivate = detail.isPrivate;
    this.isReusable = detail.isReusable;
    this.admits = detail.admits;
    this.problems = detail.problems;
    this.docs = detail.docs;
    this.#detail = detail;
  }

  /** A copy of the failure that names its source. */
  of(source: string): Failure {
    return new Failure(this.code, this.message, { ...this.#detail, source });
  }

  /** A copy that names its place in a larger request. */
  at(message: string, field: string): Failure {
    return new Failure(this.code, message, { ...this.#detail, field });
  }

  /** A copy whose answer has further header fields, flat. */
  answeredWith(more: readonly string[]): Failure {
    const fields = [...(this.fields ?? []), ...more];
    return new Failure(this.code, this.message, { ...this.#detail, fields });
  }

  /** A copy whose answer is only for its client, and for those whom `admits` lets have it. */
  forClient(admits: FailureDetail['admits']): Failure {
    const isReusable = admits === undefined ? undefined : this.isReusable;
    const changes = { isPrivate: true, isReusable, admits } as const;
    return new Failure(this.code, this.message, { ...this.#detail, ...changes });
  }
}

/**
 * Converts anything thrown into a Failure: a Failure itself, `unavailable` if no file descriptor
 * was left, or else `internal` with the original as its cause.
 */
export function failureFrom(thrown: unknown): Failure {
  if (lacksDescriptors(thrown)) return tooManyOpenFiles();
  if (thrown instanceof Failure) return thrown;
  return new Failure('internal', 'Something went wrong on the server; its log has the details.', {
    cause: thrown,
  });
}

/** The failure of requests that arrive while the server stops. */
export function stoppingFailure(): Failure {
  return new Failure('unavailable', 'The server is stopping.', { retryAfterSeconds: 1 });
}

/** The failure of a request for which the process has no file descriptor left. */
export function tooManyOpenFiles(): Failure {
  return new Failure('unavailable', 'The server has too many files open; try again in a moment.', {
    retryAfterSeconds: 1,
    limit: 'open_files',
  });
}

/** Whether an error, or one of its causes, says that no file descriptor was left (open(2)). */
export function lacksDescriptors(error: unknown): boolean {
  for (let one = error; one instanceof Error; one = one.cause) {
    const { code } = one as NodeJS.ErrnoException;
    if (code === 'EMFILE' || code === 'ENFILE') return true;
  }
  return false;
}

/**
 * Why a field of a write is invalid or has no effect (docs/design/page-rules.md#fields). The first
 * eight are mistakes: `Prefer: handling=strict` refuses a write with one of them.
 */
export const problemReasons = [
  'unknown_field',
  'wrong_type',
  'not_for_kind',
  'bad_format',
  'out_of_range',
  'unknown_engine',
  'missing',
  'no_row',
  'unreachable_private',
  'no_effect',
  'shadowed',
] as const;

/** One of problemReasons. */
export type ProblemReason = (typeof problemReasons)[number];

/** A problem of a field, in the answer to a write. */
export interface Problem {
  /** The path of the field: `enginedata.headers.X Y`. */
  readonly field: string;
  readonly reason: ProblemReason;
  /** A sentence that names the mistake and a valid value. */
  readonly message: string;
  /** The nearest known name or value, if there is one. */
  readonly suggestion?: string;
}

/**
 * Reports that a client no longer waits for its answer. It is the part of AbortSignal that the code
 * uses: creating an AbortSignal takes longer than answering with a small page.
 */
export interface Cancellation {
  readonly aborted: boolean;
  addEventListener(type: 'abort', listener: () => void, options?: { readonly once: true }): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}
