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

/** The closed set of ways in which Waymark says no (docs/design/failures.md#failures). */
export type FailureCode = (typeof failureCodes)[number];

/** Whether a value is one of the codes, as an answer of the API carries them. */
export function isFailureCode(value: unknown): value is FailureCode {
  return failureCodes.some((code) => code === value);
}

/** What a caller may want to know of a failure besides its code and message. */
interface FailureDetail {
  /** The input field at fault, in the caller's own spelling. */
  readonly field?: string;
  /** The methods that would have been allowed (RFC 9110 §15.5.6). */
  readonly allow?: readonly string[];
  readonly retryAfterSeconds?: number;
  /** Versions of the websocket protocol that are understood (RFC 6455 §4.4). */
  readonly websocketVersion?: string;
  /** The HTTP status, where there is a more exact one than that of the code. */
  readonly status?: number;
  /** The limit that a client has run into, where the log is to tell of it. */
  readonly limit?: LimitName;
  /** Who has failed, as Server-Timing and the access log name who answers: `rule:<id>`. */
  readonly source?: string;
  /** What is wrong with the fields of a write that strict handling refuses. */
  readonly problems?: readonly Problem[];
  readonly cause?: unknown;
}

/**
 * The one error class that is meant to be seen by a caller: `message` says what to do and holds
 * neither a secret nor a path of this machine. Everything else that is thrown is a bug and is
 * answered as `internal`.
 */
export class Failure extends Error {
  readonly code: FailureCode;
  readonly field: string | undefined;
  readonly allow: readonly string[] | undefined;
  readonly retryAfterSeconds: number | undefined;
  readonly websocketVersion: string | undefined;
  readonly status: number | undefined;
  readonly limit: LimitName | undefined;
  readonly source: string | undefined;
  readonly problems: readonly Problem[] | undefined;
  readonly #detail: FailureDetail;

  constructor(code: FailureCode, message: string, detail: FailureDetail = {}) {
    super(message, { cause: detail.cause });
    this.name = 'Failure';
    this.code = code;
    this.field = detail.field;
    this.allow = detail.allow;
    this.retryAfterSeconds = detail.retryAfterSeconds;
    this.websocketVersion = detail.websocketVersion;
    this.status = detail.status;
    this.limit = detail.limit;
    this.source = detail.source;
    this.problems = detail.problems;
    this.#detail = detail;
  }

  /** The same failure as that of a source. */
  of(source: string): Failure {
    return new Failure(this.code, this.message, { ...this.#detail, source });
  }
}

/**
 * Turns anything thrown into a Failure: itself, `unavailable` where no file descriptor was left, or
 * `internal` with the original as its cause.
 */
export function failureFrom(thrown: unknown): Failure {
  if (lacksDescriptors(thrown)) return tooManyOpenFiles();
  if (thrown instanceof Failure) return thrown;
  return new Failure('internal', 'Something went wrong on the server; its log has the details.', {
    cause: thrown,
  });
}

/** What whatever comes is refused with when nothing new is begun any more. */
export function stoppingFailure(): Failure {
  return new Failure('unavailable', 'The server is stopping.', { retryAfterSeconds: 1 });
}

/** What a request is refused with for which the process has no file descriptor left. */
export function tooManyOpenFiles(): Failure {
  return new Failure('unavailable', 'The server has too many files open; try again in a moment.', {
    retryAfterSeconds: 1,
    limit: 'open_files',
  });
}

/** Whether an error, or one of its causes, is that no file descriptor was left (open(2)). */
export function lacksDescriptors(error: unknown): boolean {
  for (let one = error; one instanceof Error; one = one.cause) {
    const { code } = one as NodeJS.ErrnoException;
    if (code === 'EMFILE' || code === 'ENFILE') return true;
  }
  return false;
}

/**
 * Why a field that was sent is not in force, or has no effect (docs/design/page-rules.md#fields).
 * The first seven are mistakes: `Prefer: handling=strict` refuses a write that has one of them.
 */
export const problemReasons = [
  'unknown_field',
  'wrong_type',
  'not_for_kind',
  'bad_format',
  'out_of_range',
  'unknown_engine',
  'missing',
  'unreachable_private',
  'no_effect',
  'shadowed',
] as const;

/** One of problemReasons. */
export type ProblemReason = (typeof problemReasons)[number];

/** What is wrong with a field that was sent, as the answer to the write says it. */
export interface Problem {
  /** Where the mistake is: `enginedata.headers.X Y`. */
  readonly field: string;
  readonly reason: ProblemReason;
  /** A sentence for a person: what is wrong, and what a valid value is. */
  readonly message: string;
  /** The nearest known name, where the field or value has one. */
  readonly suggestion?: string;
}
