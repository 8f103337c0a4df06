import { Failure, lacksDescriptors, tooManyOpenFiles } from '../model/failure.ts';

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
 * `invalid` for a request that HTTP cannot carry, `unavailable` where there is no file descriptor
 * for a connection, `bad_gateway` for all else. The error itself, which names addresses, is the
 * cause.
 */
export function outboundFailure(error: unknown): Failure {
  if (error instanceof Failure) return error;
  if (lacksDescriptors(error)) return tooManyOpenFiles();
  const code = codeOf(error);
  if (timeouts.has(code)) {
    return new Failure('gateway_timeout', 'The source took too long to answer.', { cause: error });
  }
  if (requestFaults.has(code)) {
    return new Failure('invalid', 'The request cannot be passed on to the source as it is.', {
      cause: error,
    });
  }
  return new Failure('bad_gateway', 'The source could not be reached or broke off.', {
    cause: error,
  });
}

/**
 * The refusal of an address, with its reason for the log only (docs/design/webhooks.md#addresses,
 * Addresses).
 */
export function refusedAddress(reason: string): Failure {
  return new Failure('bad_gateway', 'The source\u2019s address is not allowed.', {
    cause: new Error(reason),
  });
}

/**
 * Whether an error means that an open connection ended, as a pooled one may at any time (RFC 9112
 * §9.3.1).
 */
export function isLostConnection(error: unknown): boolean {
  return lostConnections.has(codeOf(error));
}

/** What undici's client says of a connection that the other side has closed. */
export function connectionClosed(): Error {
  return Object.assign(new Error('The other side has closed the connection.'), {
    code: 'UND_ERR_SOCKET',
  });
}

/** What it says of an answer that nothing came of for too long. */
export function timedOut(): Error {
  return Object.assign(new Error('Nothing has come in time.'), { code: 'UND_ERR_BODY_TIMEOUT' });
}

/** What it says of content that is no HTTP. */
export function brokenAnswer(): Error {
  return Object.assign(new Error('The content is not framed as HTTP/1.1 is.'), {
    code: 'HPE_INVALID_CHUNK_SIZE',
  });
}

function codeOf(error: unknown): string {
  return String((error as { readonly code?: unknown } | undefined)?.code);
}
