import { Failure } from '../../values/failure.ts';
import { type Scheme, parseAuthority } from '../../values/network/authority.ts';
import type { Cidr } from '../../values/network/cidr.ts';
import type { ClientAddress, Peer } from '../../values/network/peer.ts';
import {
  type RequestPath,
  encodeBytes,
  queryRefusal,
  readRequestPath,
  wholeServer,
} from '../../values/path.ts';
import { requestLineBytesMax } from '../limits.ts';
import { type Fields, type RequestTarget, isImplemented } from '../request.ts';
import { tokenSource } from '../syntax.ts';
import { readFields, requireExpectation, requireFraming } from './fields.ts';
import { resolveClient } from './forwarded.ts';
import { methodNotImplemented, requestLineTooLong } from './refusals.ts';

/** The head of a request before validation. */
export interface RequestHead {
  readonly method: string;
  readonly target: string;
  /** `1.0` or `1.1`. */
  readonly httpVersion: string;
  /** Flat list of name, value, name, value; latin1. */
  readonly rawFields: readonly string[];
  /** The scheme of the connection. */
  readonly scheme: Scheme;
  readonly peer: Pick<Peer, 'listener' | 'address' | 'local'>;
}

/** A request that passed validation. */
export interface ValidatedRequest {
  readonly target: RequestTarget;
  /**
   * Whether the request line has raw bytes beyond ASCII, which no URI contains: the client has to
   * send `target`, in which they are percent-encoded (RFC 9112 §3.2).
   */
  readonly isUnencoded: boolean;
  readonly fields: Fields;
  /** The address of the client: the peer's, or the one in a trusted proxy's fields. */
  readonly address: ClientAddress;
  /** Whether the peer is a trusted proxy. */
  readonly isOfProxy: boolean;
}

const isToken = new RegExp(`^${tokenSource}$`);
const absoluteForm = /^(https?):\/\/([^/?#]*)/i;

/**
 * Validates the head of a request (docs/design/requests.md#validation). Returns its one canonical
 * target, its fields and its client; `known` is what canonicalTarget has returned for this head and
 * the scheme of its connection. Throws `invalid` for a head that two recipients could read
 * differently (RFC 9110 §7, RFC 9112 §3 and §6).
 */
export function parseRequest(
  head: RequestHead,
  { trustProxy }: { readonly trustProxy: readonly Cidr[] },
  known?: RequestTarget,
): ValidatedRequest {
  requireVersion(head);
  requireLength(head);
  requireMethod(head);
  const fields = readFields(head.rawFields);
  requireFraming(fields, head.httpVersion);
  requireExpectation(fields, head.httpVersion);
  const { address, scheme, authority, isOfProxy } = resolveClient(head, fields, trustProxy);
  const encoded = encodeBytes(head.target);
  const isKnown = known !== undefined && scheme === head.scheme && encoded === head.target;
  const target = isKnown
    ? known
    : canonicalTarget(
        { method: head.method, target: encoded },
        { scheme, host: hostOf(head, fields) },
      );
  return {
    target: authority === undefined ? target : { ...target, origin: `${scheme}://${authority}` },
    isUnencoded: encoded !== head.target,
    fields,
    address,
    isOfProxy,
  };
}

/**
 * Returns the target of a request line and its Host field (RFC 9110 §7.1). Throws `invalid` or
 * `too_large` if they name no target, `method_not_allowed` for CONNECT.
 */
export function canonicalTarget(
  line: Pick<RequestHead, 'method' | 'target'>,
  { scheme, host: field }: { readonly scheme: Scheme; readonly host: string | undefined },
): RequestTarget {
  requireLength(line);
  const host = requireHost(field, scheme);
  if (line.method === 'CONNECT') throw noTunnel(line.target, scheme);
  return readTarget(line, { scheme, host });
}

const versions: readonly string[] = ['1.0', '1.1', '2'];

function requireVersion({ httpVersion }: RequestHead): void {
  if (!versions.includes(httpVersion)) {
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
 * Returns the Host field. HTTP/1.0 does not require it (RFC 9112 §3.2), and health checks of load
 * balancers lack it: such a request is for the address to which its client has connected.
 */
function hostOf({ httpVersion, peer }: RequestHead, { host }: Fields): string | undefined {
  return host ?? (httpVersion === '1.0' ? peer.local() : undefined);
}

/** Returns the canonical authority of the Host field. */
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

/** A site: the scheme of the connection, and an authority. */
interface RequestSite {
  readonly scheme: Scheme;
  readonly host: string;
}

/** Returns the target of a request line in any form for an origin server (RFC 9112 §3.2). */
function readTarget(
  { method, target }: Pick<RequestHead, 'method' | 'target'>,
  site: RequestSite,
): RequestTarget {
  if (target === '*' && method === 'OPTIONS') return targetAt(site, wholeServer, '');
  const { host, rest } = target.startsWith('/')
    ? { ...site, rest: target }
    : absolute(target, site);
  const mark = rest.indexOf('?');
  const query = mark === -1 ? '' : rest.slice(mark + 1);
  const refused = queryRefusal(query);
  if (refused !== undefined) throw refusal(refused.reason);
  const read = readRequestPath(mark === -1 ? rest : rest.slice(0, mark));
  if ('reason' in read) throw refusal(read.reason);
  const found = targetAt({ scheme: site.scheme, host }, read, query);
  return mark !== -1 && query === '' ? { ...found, hasEmptyQuery: true } : found;
}

function targetAt({ scheme, host }: RequestSite, path: RequestPath, query: string): RequestTarget {
  return { origin: `${scheme}://${host}`, path: path.path, sentPath: path.sentPath, query };
}

/**
 * Returns the authority of an absolute-form target, which counts instead of the Host field (RFC
 * 9112 §3.2.2), and the rest of the target. Its scheme has to be that of the connection.
 */
function absolute(
  target: string,
  { scheme }: Pick<RequestSite, 'scheme'>,
): { readonly host: string; readonly rest: string } {
  const match = absoluteForm.exec(target);
  if (match === null) {
    throw new Failure('invalid', 'The request target must be a path that starts with /.');
  }
  const [site, targetScheme = '', authority = ''] = match;
  const host = parseAuthority(authority, scheme);
  if (targetScheme.toLowerCase() !== scheme || host === undefined) {
    throw new Failure('invalid', 'The request target names no site of this connection.');
  }
  const rest = target.slice(site.length);
  return { host, rest: rest.startsWith('/') ? rest : `/${rest}` };
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
