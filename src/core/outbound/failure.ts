import { Failure, lacksDescriptors, tooManyOpenFiles } from '../values/failure.ts';

const sentences = {
  address:
    'The address is not allowed. If it is in a private network, name that in allow_private, ' +
    'such as 127.0.0.0/8: in [webhook] for hooks, in [fetch] for page rules.',
  name: 'The name could not be resolved',
  connect: 'The connection could not be made',
  family: 'The server has no address of the family (IPv4 or IPv6) of local_address.',
  connect_timeout: 'No connection was made in time.',
  tls: 'TLS failed',
  timeout: 'The response was not complete in time.',
  broken: 'The connection ended before the response did.',
  malformed: 'The response is not HTTP/1.1.',
  header: 'The header section of the response is too large.',
  coding: 'The response has a Transfer-Encoding other than chunked.',
  unsent: 'The server answered with success before it had the whole request, and did not take it.',
  request: 'HTTP cannot carry this request.',
  cancelled: 'The request was cancelled.',
} as const;

/** The code of the error if no address has the family of `local_address`. */
export const otherFamilyCode = 'WAYMARK_OTHER_FAMILY';

/** The codes of OpenSSL and Node for errors of certificates and handshakes. */
const tls = /^(?:ERR_TLS_|ERR_SSL_|ERR_OSSL_|CERT_|CRL_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_)/;

/** The code of connectionClosed(). */
const closedCode = 'WAYMARK_CLOSED';
/** The code of connectTimedOut(). */
const connectTimeoutCode = 'WAYMARK_CONNECT_TIMEOUT';
/** The code of timedOut(). */
const timeoutCode = 'WAYMARK_TIMEOUT';
/** The code of brokenAnswer(). */
const malformedCode = 'WAYMARK_MALFORMED';
/** The code of headTooLarge(). */
const headerCode = 'WAYMARK_HEADER';
/** The code of unknownCoding(). */
const codingCode = 'WAYMARK_CODING';
/** The code of notCarried(). */
export const requestCode = 'WAYMARK_REQUEST';

const timeouts = new Set(['ETIMEDOUT', connectTimeoutCode, timeoutCode]);
const lostConnections = new Set([closedCode, 'ECONNRESET', 'EPIPE']);

/**
 * The failure of a request to another server (docs/design/fetching.md#sources): `gateway_timeout`,
 * `invalid` for a request that HTTP cannot express, `unavailable` if no file descriptor was free
 * for a connection, otherwise `bad_gateway`. Its cause is the error, which names addresses.
 */
export function outboundFailure(error: unknown): Failure {
  if (error instanceof Failure) return error;
  if (lacksDescriptors(error)) return tooManyOpenFiles();
  const code = codeOf(error);
  if (timeouts.has(code)) {
    return new Failure('gateway_timeout', 'The source did not respond in time.', { cause: error });
  }
  if (isNotCarried(error)) {
    return new Failure('invalid', 'HTTP cannot carry this request to the source.', {
      cause: error,
    });
  }
  const message =
    code === codingCode
      ? 'The source answered with a transfer coding that was not requested.'
      : 'The source could not be reached, or it ended the connection too early.';
  return new Failure('bad_gateway', message, { cause: error });
}

/**
 * The refusal of an address (docs/design/webhooks.md#addresses). Only the log has the reason.
 */
export function refusedAddress(reason: string): Failure {
  return new Failure('bad_gateway', 'The source\u2019s address is not allowed.', {
    cause: new Error(reason),
  });
}

/** Whether an error is one of notCarried. */
export function isNotCarried(error: unknown): boolean {
  return codeOf(error) === requestCode;
}

/** Whether an open connection has ended, as a pooled one may at any time (RFC 9112 §9.3.1). */
export function isLostConnection(error: unknown): boolean {
  return lostConnections.has(codeOf(error));
}

/** The error of a connection that the server has closed. */
export function connectionClosed(): Error {
  return withCode('The server has closed the connection.', closedCode);
}

/** The error of a connection that was not made in time. */
export function connectTimedOut(): Error {
  return withCode('No connection was made in time.', connectTimeoutCode);
}

/** The error of a response that has stalled. */
export function timedOut(): Error {
  return withCode('No data arrived in time.', timeoutCode);
}

/** The error of a request that HTTP cannot carry. */
export function notCarried(what = 'a field, the method or the target'): Error {
  return withCode(`HTTP cannot carry ${what} of this request.`, requestCode);
}

/** The error of a response that is not HTTP/1.1. */
export function brokenAnswer(): Error {
  return withCode('The response is malformed.', malformedCode);
}

/** The error of a response whose header section exceeds the limit. */
export function headTooLarge(): Error {
  return withCode('The header section of the response is too large.', headerCode);
}

/** The error of a response whose Transfer-Encoding is not `chunked` alone. */
export function unknownCoding(): Error {
  return withCode(sentences.coding, codingCode);
}

function withCode(message: string, code: string): Error {
  return Object.assign(new Error(message), { code });
}

function codeOf(error: unknown): string {
  return String((error as { readonly code?: unknown } | undefined)?.code);
}

/** Why an exchange with another server failed. */
export interface OutboundProblem {
  readonly code: ProblemCode;
  /** A sentence for the user, without addresses. */
  readonly message: string;
}

/** The codes of all problems. */
type ProblemCode = keyof typeof sentences;

/** The problem with a code; `detail` is the name of an error, which can be searched for. */
export function outboundProblem(code: ProblemCode, detail?: string): OutboundProblem {
  const sentence = sentences[code];
  if (sentence.endsWith('.')) return { code, message: sentence };
  return { code, message: detail === undefined ? `${sentence}.` : `${sentence}: ${detail}.` };
}

const codes: ReadonlyMap<string, ProblemCode> = new Map([
  ...named('family', otherFamilyCode),
  ...named('connect_timeout', `${connectTimeoutCode} ETIMEDOUT`),
  ...named('timeout', timeoutCode),
  ...named('broken', `${closedCode} ECONNRESET EPIPE`),
  ...named('request', requestCode),
  ...named('malformed', malformedCode),
  ...named('header', headerCode),
  ...named('coding', codingCode),
  ...named('name', 'ENOTFOUND EAI_AGAIN EAI_FAIL EAI_NONAME ENODATA ESERVFAIL'),
  ...named('tls', 'EPROTO HOSTNAME_MISMATCH INVALID_CA INVALID_PURPOSE PATH_LENGTH_EXCEEDED'),
]);

/**
 * The problem for an error of Node or the dialler. An unknown error concerns the connection
 * if the request has not begun, otherwise the response.
 */
export function problemOf(error: unknown, hasBegun: boolean): OutboundProblem {
  if (error instanceof Failure) return outboundProblem('address');
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  const detail = typeof code === 'string' ? code : undefined;
  const known = codes.get(detail ?? '');
  if (known !== undefined) return outboundProblem(known, detail);
  if (detail !== undefined && tls.test(detail)) return outboundProblem('tls', detail);
  return outboundProblem(hasBegun ? 'malformed' : 'connect', detail);
}

function named(code: ProblemCode, names: string): readonly (readonly [string, ProblemCode])[] {
  return names.split(' ').map((name) => [name, code]);
}
