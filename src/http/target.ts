import { parseAuthority, type Scheme } from '../model/authority.ts';
import type { Cidr } from '../model/cidr.ts';
import { Failure } from '../model/failure.ts';
import { requestLineBytesMax } from './limits.ts';
import { queryRefusal, readPath } from '../model/path.ts';
import { isImplemented } from '../model/method.ts';
import { readFields, requireExpectation, requireFraming } from './fields.ts';
import { resolveClient } from './forwarded.ts';
import { methodNotImplemented, requestLineTooLong } from './refusals.ts';
import type { Fields, RequestTarget } from './request.ts';
import { tokenSource } from './syntax.ts';

/** The head of a request before validation. */
export interface RequestHead {
  readonly method: string;
  readonly target: string;
  /** `1.0` or `1.1`. */
  readonly httpVersion: string;
  /** Flat list of name, value, name, value; latin1. */
  readonly rawFields: readonly string[];
  /** Whether the connection is TLS. */
  readonly secure: boolean;
  readonly peerAddress: string;
}

/** A request that passed validation. */
export interface ValidatedRequest {
  readonly target: RequestTarget;
  readonly fields: Fields;
  /** The address of the client: the peer's, or the one in a trusted proxy's fields. */
  readonly address: string;
}

const isToken = new RegExp(`^${tokenSource}$`);
const absoluteForm = /^(https?):\/\/([^/?#]*)/i;

/**
 * Validates the head of a request (docs/design/requests.md#validation). Returns its one canonical
 * target, its fields and its client. Throws `invalid` for a head that two recipients could read
 * differently (RFC 9110 §7, RFC 9112 §3 and §6).
 */
export function parseRequest(
  head: RequestHead,
  { trustProxy }: { readonly trustProxy: readonly Cidr[] },
): ValidatedRequest {
  requireVersion(head);
  requireLength(head);
  requireMethod(head);
  const fields = readFields(head.rawFields);
  requireFraming(fields, head.httpVersion);
  requireExpectation(fields, head.httpVersion);
  const { address, scheme, authority } = resolveClient({
    fields,
    peerAddress: head.peerAddress,
    scheme: head.secure ? 'https' : 'http',
    trustProxy,
  });
  const { origin, path, query } = canonicalTarget(head, { scheme, host: fields.host });
  return {
    target: { origin: authority === undefined ? origin : `${scheme}://${authority}`, path, query },
    fields,
    address,
  };
}

/**
 * Returns the canonical target of a request line and its Host field (RFC 9110 §7.1). Throws
 * `invalid` or `too_large` if they name no target, `method_not_allowed` for CONNECT.
 */
export function canonicalTarget(
  line: Pick<RequestHead, 'method' | 'target'>,
  { scheme, host: field }: { readonly scheme: Scheme; readonly host: string | undefined },
): RequestTarget {
  requireLength(line);
  const host = requireHost(field, scheme);
  if (line.method === 'CONNECT') throw noTunnel(line.target, scheme);
  const { path, query } = readTarget(line, { scheme, host });
  return { origin: `${scheme}://${host}`, path, query };
}

function requireVersion({ httpVersion }: RequestHead): void {
  if (httpVersion !== '1.1' && httpVersion !== '1.0') {
    throw new Failure('invalid', 'The server supports HTTP/1.1 and HTTP/1.0 only.');
  }
}

function requireLength({ method, target }: Pick<RequestHead, 'method' | 'target'>): void {
  const length = method.length + target.length + ' '.length + ' HTTP/1.1'.length;
  if (length > requestLineBytesMax) throw requestLineTooLong();
}

function requireMethod({ method }: RequestHead): void {
  if (!isToken.test(method)) {
    throw new Failure('invalid', 'The method of the request is not a token.');
  }
  if (!isImplemented(method)) throw methodNotImplemented();
}

/**
 * Returns the canonical authority of the Host field. It is required in HTTP/1.0 too, where RFC 9112
 * §3.2 does not require it.
 */
function requireHost(value: string | undefined, scheme: Scheme): string {
  if (value === undefined) {
    throw new Failure('invalid', 'The Host field is missing.', { field: 'host' });
  }
  const host = parseAuthority(value, scheme);
  if (host === undefined) {
    throw new Failure('invalid', 'The Host field is not a host with an optional port.', {
      field: 'host',
    });
  }
  return host;
}

/** Returns path and query of a request target in any form for an origin server (RFC 9112 §3.2). */
function readTarget(
  { method, target }: Pick<RequestHead, 'method' | 'target'>,
  site: { readonly scheme: Scheme; readonly host: string },
): { readonly path: string; readonly query: string } {
  if (target === '*' && method === 'OPTIONS') return { path: target, query: '' };
  const relative = target.startsWith('/') ? target : withoutSite(target, site);
  const mark = relative.indexOf('?');
  const query = mark === -1 ? '' : relative.slice(mark + 1);
  const refused = queryRefusal(query);
  if (refused !== undefined) throw refusal(refused.reason);
  const path = readPath(mark === -1 ? relative : relative.slice(0, mark));
  if (typeof path !== 'string') throw refusal(path.reason);
  return { path, query };
}

/**
 * Returns an absolute-form target without its scheme and authority, which must equal the
 * connection's scheme and the Host field.
 */
function withoutSite(
  target: string,
  { scheme, host }: { readonly scheme: Scheme; readonly host: string },
): string {
  const match = absoluteForm.exec(target);
  if (match === null) {
    throw new Failure('invalid', 'The request target must be a path that starts with /.');
  }
  const [site, targetScheme = '', authority = ''] = match;
  if (targetScheme.toLowerCase() !== scheme || parseAuthority(authority, scheme) !== host) {
    throw new Failure('invalid', 'The request target names another site than the Host field.');
  }
  const rest = target.slice(site.length);
  return rest.startsWith('/') ? rest : `/${rest}`;
}

/** Makes the failure for CONNECT: the server is not a proxy (RFC 9110 §9.3.6). */
function noTunnel(target: string, scheme: Scheme): Failure {
  if (parseAuthority(target, scheme) === undefined) {
    return new Failure('invalid', 'The target of CONNECT must be a host and its port.');
  }
  return new Failure('method_not_allowed', 'The server is not a proxy and opens no tunnels.', {
    allow: ['GET', 'HEAD', 'OPTIONS'],
  });
}

function refusal(clause: string): Failure {
  return new Failure('invalid', `${clause.charAt(0).toUpperCase()}${clause.slice(1)}.`);
}
