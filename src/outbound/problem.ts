import { Failure } from '../model/failure.ts';

/** Why an exchange with another server did not come to its end. */
export interface OutboundProblem {
  readonly code: ProblemCode;
  /** For whoever asked for the exchange: names no address. */
  readonly message: string;
}

const sentences = {
  address:
    'The address is not one that may be connected to; a private one has to stand in allow_private.',
  name: 'The name could not be looked up',
  connect: 'The connection could not be made',
  family: 'The other side has no address of the family (IPv4, IPv6) that local_address has.',
  connect_timeout: 'No connection was made in time.',
  tls: 'TLS failed',
  timeout: 'The answer was not complete in time.',
  broken: 'The connection ended before the answer did.',
  malformed: 'The answer is not one of HTTP/1.1.',
  header: 'The header section of the answer is too large.',
  request: 'The request cannot be sent as it is.',
  cancelled: 'The request was cancelled.',
} as const;

/** The closed set of what may go wrong. */
type ProblemCode = keyof typeof sentences;

/** What went wrong, in words; `detail` is the name of an error, as it helps who looks it up. */
export function outboundProblem(code: ProblemCode, detail?: string): OutboundProblem {
  const sentence = sentences[code];
  if (sentence.endsWith('.')) return { code, message: sentence };
  return { code, message: detail === undefined ? `${sentence}.` : `${sentence}: ${detail}.` };
}

/** The code of the error where no address has the family that connections come from. */
export const otherFamilyCode = 'WAYMARK_OTHER_FAMILY';

const codes: ReadonlyMap<string, ProblemCode> = new Map([
  ...named('family', otherFamilyCode),
  ...named('connect_timeout', 'UND_ERR_CONNECT_TIMEOUT ETIMEDOUT'),
  ...named('timeout', 'UND_ERR_HEADERS_TIMEOUT UND_ERR_BODY_TIMEOUT'),
  ...named('header', 'UND_ERR_HEADERS_OVERFLOW HPE_HEADER_OVERFLOW'),
  ...named('broken', 'UND_ERR_SOCKET ECONNRESET EPIPE UND_ERR_RES_CONTENT_LENGTH_MISMATCH'),
  ...named('request', 'UND_ERR_INVALID_ARG UND_ERR_NOT_SUPPORTED'),
  ...named('name', 'ENOTFOUND EAI_AGAIN EAI_FAIL EAI_NONAME ENODATA ESERVFAIL'),
  ...named('tls', 'EPROTO HOSTNAME_MISMATCH INVALID_CA INVALID_PURPOSE PATH_LENGTH_EXCEEDED'),
]);

/** As OpenSSL and Node name what is wrong with a certificate or a handshake. */
const tls = /^(?:ERR_TLS_|ERR_SSL_|ERR_OSSL_|CERT_|CRL_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_)/;

/**
 * What an error of undici, Node or the dialler means. An unknown one is about the connection before
 * the request was begun, about the answer afterwards.
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
