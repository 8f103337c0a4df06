import { parseAuthority, type Scheme } from '../model/authority.ts';
import type { Cidr } from '../model/cidr.ts';
import { Failure } from '../model/failure.ts';
import { requestLineBytesMax } from './limits.ts';
import { queryRefusal, readPath } from '../model/path.ts';
import { isImplemented } from '../model/method.ts';
import { readFields, requireExpectation, requireFraming } from './fields.ts';
import { believedClient } from './forwarded.ts';
import { methodNotImplemented, requestLineTooLong } from './refusals.ts';
import type { Fields, RequestTarget } from './request.ts';
import { tokenSource } from './syntax.ts';

/** The head of a request as it came in: nothing of it has been checked. */
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

/** A request that was let in. */
export interface ValidatedRequest {
  readonly target: RequestTarget;
  readonly fields: Fields;
  /** The client's address as believed: the peer's, or what a trusted proxy said of it. */
  readonly address: string;
}

const isToken = new RegExp(`^${tokenSource}$`);
const absoluteForm = /^(https?):\/\/([^/?#]*)/i;
/**
 * The door (docs/design/requests.md#validation): turns the head of a request into its one canonical
 * target, its fields and its client, and throws `invalid` for anything that two readers could
 * understand differently (RFC 9110 §7, RFC 9112 §3 and §6).
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
  const { address, scheme, authority } = believedClient({
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
 * The one target that a request line and its Host field name (RFC 9110 §7.1). Throws `invalid` or
 * `too_large` where they name none, `method_not_allowed` for CONNECT.
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
    throw new Failure('invalid', 'Only HTTP/1.1 and HTTP/1.0 are spoken here.');
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
 * The canonical authority of the Host field, which HTTP/1.0 has to send here too (RFC 9112 §3.2).
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

/** Path and query of any form of request target that an origin server gets (RFC 9112 §3.2). */
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

/** The rest of an absolute-form target, which has to name the same site as scheme and Host do. */
function withoutSite(
  target: string,
  { scheme, host }: { readonly scheme: Scheme; readonly host: string },
): string {
  const match = absoluteForm.exec(target);
  if (match === null) {
    throw new Failure('invalid', 'The request target has to be a path that starts with /.');
  }
  const [site, targetScheme = '', authority = ''] = match;
  if (targetScheme.toLowerCase() !== scheme || parseAuthority(authority, scheme) !== host) {
    throw new Failure('invalid', 'The request target names another site than the Host field.');
  }
  const rest = target.slice(site.length);
  return rest.startsWith('/') ? rest : `/${rest}`;
}

/** What a client is told that wants a tunnel: this is no proxy (RFC 9110 §9.3.6). */
function noTunnel(target: string, scheme: Scheme): Failure {
  if (parseAuthority(target, scheme) === undefined) {
    return new Failure('invalid', 'The target of CONNECT has to be a host and its port.');
  }
  return new Failure('method_not_allowed', 'No tunnels are opened here.', {
    allow: ['GET', 'HEAD', 'OPTIONS'],
  });
}

function refusal(clause: string): Failure {
  return new Failure('invalid', `${clause.charAt(0).toUpperCase()}${clause.slice(1)}.`);
}
