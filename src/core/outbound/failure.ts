import { Failure, lacksDescriptors, tooManyOpenFiles } from '../values/failure.ts';

const timeouts = new Set([
  'ETIMEDOUT',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
]);
const requestFaults = new Set([
  'UND_ERR_INVALID_ARG',
  'UND_ERR_NOT_SUPPORTED',
  'UND_ERR_REQ_CONTENT_LENGTH_MISMATCH',
]);
const lostConnections = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE']);

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
  if (requestFaults.has(code)) {
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

/** Whether an open connection has ended, as a pooled one may at any time (RFC 9112 §9.3.1). */
export function isLostConnection(error: unknown): boolean {
  return lostConnections.has(codeOf(error));
}

/** An error with undici's code for a connection that the server has closed. */
export function connectionClosed(): Error {
  return Object.assign(new Error('The server has closed the connection.'), {
    code: 'UND_ERR_SOCKET',
  });
}

/** An error with undici's code for a response that has stalled. */
export function timedOut(): Error {
  return Object.assign(new Error('No data arrived in time.'), { code: 'UND_ERR_BODY_TIMEOUT' });
}

/** An error with the code of Node's parser for malformed chunked content. */
export function brokenAnswer(): Error {
  return Object.assign(new Error('The chunked content is malformed.'), {
    code: 'HPE_INVALID_CHUNK_SIZE',
  });
}

function codeOf(error: unknown): string {
  return String((error as { readonly code?: unknown } | undefined)?.code);
}
