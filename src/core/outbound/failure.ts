import { Failure, lacksDescriptors, tooManyOpenFiles } from '../values/failure.ts';

/** The code of connectionClosed(). */
export const closedCode = 'WAYMARK_CLOSED';
/** The code of connectTimedOut(). */
export const connectTimeoutCode = 'WAYMARK_CONNECT_TIMEOUT';
/** The code of timedOut(). */
export const timeoutCode = 'WAYMARK_TIMEOUT';
/** The code of brokenAnswer(). */
export const malformedCode = 'WAYMARK_MALFORMED';
/** The code of headTooLarge(). */
export const headerCode = 'WAYMARK_HEADER';
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
  return new Failure(
    'bad_gateway',
    'The source could not be reached, or it ended the connection too early.',
    {
      cause: error,
    },
  );
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

function withCode(message: string, code: string): Error {
  return Object.assign(new Error(message), { code });
}

function codeOf(error: unknown): string {
  return String((error as { readonly code?: unknown } | undefined)?.code);
}
