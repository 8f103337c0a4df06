import { Failure } from '../values/failure.ts';
import {
  closedCode,
  connectTimeoutCode,
  headerCode,
  malformedCode,
  requestCode,
  timeoutCode,
} from './failure.ts';

/** Why an exchange with another server failed. */
export interface OutboundProblem {
  readonly code: ProblemCode;
  /** A sentence for the user, without addresses. */
  readonly message: string;
}

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
  request: 'HTTP cannot carry this request.',
  cancelled: 'The request was cancelled.',
} as const;

/** The codes of all problems. */
type ProblemCode = keyof typeof sentences;

/** The problem with a code; `detail` is the name of an error, which can be searched for. */
export function outboundProblem(code: ProblemCode, detail?: string): OutboundProblem {
  const sentence = sentences[code];
  if (sentence.endsWith('.')) return { code, message: sentence };
  return { code, message: detail === undefined ? `${sentence}.` : `${sentence}: ${detail}.` };
}

/** The code of the error if no address has the family of `local_address`. */
export const otherFamilyCode = 'WAYMARK_OTHER_FAMILY';

const codes: ReadonlyMap<string, ProblemCode> = new Map([
  ...named('family', otherFamilyCode),
  ...named('connect_timeout', `${connectTimeoutCode} ETIMEDOUT`),
  ...named('timeout', timeoutCode),
  ...named('broken', `${closedCode} ECONNRESET EPIPE`),
  ...named('request', requestCode),
  ...named('malformed', malformedCode),
  ...named('header', headerCode),
  ...named('name', 'ENOTFOUND EAI_AGAIN EAI_FAIL EAI_NONAME ENODATA ESERVFAIL'),
  ...named('tls', 'EPROTO HOSTNAME_MISMATCH INVALID_CA INVALID_PURPOSE PATH_LENGTH_EXCEEDED'),
]);

/** The codes of OpenSSL and Node for errors of certificates and handshakes. */
const tls = /^(?:ERR_TLS_|ERR_SSL_|ERR_OSSL_|CERT_|CRL_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_)/;

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
