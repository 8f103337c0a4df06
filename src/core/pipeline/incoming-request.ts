import { clientIdentity } from '../../modules/access/client-authorities.ts';
import { cgiName, withoutSpellings } from '../http/reading/fields.ts';
import { type ValidatedRequest, parseRequest } from '../http/reading/target.ts';
import type { FieldList } from '../http/reply.ts';
import type { Fields, RequestTarget } from '../http/request.ts';
import { Failure } from '../values/failure.ts';
import { type Caller, hasOwnKey, keyPrefix, sessionPrefix } from '../values/key.ts';
import type { ClientIdentity } from '../values/network/networks.ts';
import { type ClientAddress, type Peer, schemeOf, unknownAddress } from '../values/network/peer.ts';
import type { Arrived } from './exchange.ts';
import type { Config } from '../config/config.ts';

/** The fields that only a trusted proxy may set; undefined for missing ones. */
export interface ProxyClaims {
  /** `[auth] user_header`. */
  readonly user: string | undefined;
  /** `[auth] roles_header`. */
  readonly roles: string | undefined;
  /** `[geo] country_header`. */
  readonly country: string | undefined;
  /** `[geo] region_header`. */
  readonly region: string | undefined;
  /** `[geo] city_header`. */
  readonly city: string | undefined;
}

/** The parts of a request that describe its visitor. */
export interface VisitorRequest {
  /** Its target, whose origin decides which cookies count. */
  readonly target?: { readonly origin: string } | undefined;
  readonly address: ClientAddress;
  readonly fields: Fields;
  /** What a trusted proxy claims about the visitor. */
  readonly claims: ProxyClaims;
  /** As Visitor.certificate; undefined for a connection in the clear. */
  readonly certificate?: (() => ClientIdentity | undefined) | undefined;
}

/** A validated request, with the claims of a trusted proxy about its client. */
export interface IncomingRequest extends ValidatedRequest {
  readonly claims: ProxyClaims;
  /** As Visitor.certificate; undefined for a connection in the clear. */
  readonly certificate: (() => ClientIdentity | undefined) | undefined;
}

const noClaims: ProxyClaims = {
  user: undefined,
  roles: undefined,
  country: undefined,
  region: undefined,
  city: undefined,
};

/** Validates a request as parseRequest; throws `invalid` for one that must be refused. */
export function acceptRequest(
  {
    config,
    isOwnRequest,
  }: { readonly config: Config; readonly isOwnRequest: (via: string) => boolean },
  { head, peer: connected }: Arrived,
  known?: RequestTarget,
): IncomingRequest {
  // Authors of page rules and hooks must not become a trusted proxy, nor a client on this machine,
  // by one that leads back to this server.
  const isOwn = comesFromServer(head.fields, isOwnRequest);
  const peer = isOwn ? strangerOn(connected) : connected;
  const validated = withBearerKey(
    parseRequest(
      {
        method: head.method,
        target: head.url,
        httpVersion: head.version,
        rawFields: head.fields,
        scheme: schemeOf(peer),
        peer,
      },
      config.server,
      known,
    ),
  );
  const certificate = certificateReader(peer, validated.target.origin);
  const identityFields = identityFieldsOf(config);
  if (identityFields.length === 0) return { ...validated, claims: noClaims, certificate };
  // Removes fields that only a trusted proxy may send, so that no source believes a client. A
  // trusted proxy's own spelling stays; other spellings of the name are the client's.
  const { isOfProxy } = validated;
  const fields = without(validated.fields, identityFields, isOfProxy ? identityFields : []);
  if (!isOfProxy) return { ...validated, fields, claims: noClaims, certificate };
  const { userHeader, rolesHeader } = config.auth;
  const { countryHeader, regionHeader, cityHeader } = config.geo;
  const valueOf = (name: string | undefined) => (name === undefined ? undefined : fields[name]);
  const claims = {
    user: valueOf(userHeader),
    roles: valueOf(rolesHeader),
    country: valueOf(countryHeader),
    region: valueOf(regionHeader),
    city: valueOf(cityHeader),
  };
  return { ...validated, fields, claims, certificate };
}

/** The lower-case names of the fields that only a trusted proxy may set. */
export function identityFieldsOf({ auth, geo }: Pick<Config, 'auth' | 'geo'>): readonly string[] {
  const names = [
    ...[auth.userHeader, auth.rolesHeader],
    ...[geo.countryHeader, geo.regionHeader, geo.cityHeader],
  ];
  return names.filter((name) => name !== undefined);
}

/** Whether this server has sent the request, as its Via says (RFC 9110 §7.6.3). */
function comesFromServer(fields: FieldList, isOwn: (via: string) => boolean): boolean {
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] ?? '';
    if (name.length === via.length && name.toLowerCase() === via) {
      if (isOwn(fields[at + 1] ?? '')) return true;
    }
  }
  return false;
}

const via = 'via';

function strangerOn(peer: Peer): Peer {
  return { ...peer, listener: 'tcp', address: unknownAddress };
}

function certificateReader({ tls }: Peer, origin: string): IncomingRequest['certificate'] {
  return tls && (() => clientIdentity(tls, origin));
}

const bearerKey = new RegExp(`^bearer +(${keyPrefix}[A-Za-z0-9_-]+)$`, 'i');

/**
 * Turns an API key in Authorization (`Bearer`, RFC 6750 §2.1) into the field `apikey`, unless there
 * is one. It is not a token for `[auth] jwt_…`, and neither sources nor caches get it as
 * Authorization.
 */
function withBearerKey(validated: ValidatedRequest): ValidatedRequest {
  const { authorization } = validated.fields;
  const key = authorization === undefined ? undefined : bearerKey.exec(authorization)?.[1];
  if (key === undefined) return validated;
  const fields = Object.create(null) as Record<string, string | undefined>;
  Object.assign(fields, { apikey: key }, validated.fields);
  delete fields.authorization;
  return { ...validated, fields };
}

/** What the keys of requests have been found to be: a request with a wrong key counts once. */
const identified = new WeakMap<IncomingRequest, Caller | Failure>();

/** What identifies callers by their API keys and sessions. */
interface KeyCheck {
  readonly authenticate: (
    sent: Pick<IncomingRequest, 'address'> & {
      readonly apikey: string | undefined;
      readonly cookie?: string | undefined;
    },
  ) => Caller;
}

/** Identifies the caller by its API key; throws `unauthenticated` or `rate_limited`. */
export function authenticateRequest(serving: KeyCheck, incoming: IncomingRequest): Caller {
  const { fields, address } = incoming;
  // Most requests have no key, and a caller without one takes no time.
  if (fields.apikey === undefined) return serving.authenticate({ apikey: undefined, address });
  let found = identified.get(incoming);
  if (found === undefined) {
    found = identify(() =>
      serving.authenticate({ apikey: fields.apikey, address, cookie: fields.cookie }),
    );
    identified.set(incoming, found);
  }
  if (found instanceof Failure) throw found;
  return found;
}

function identify(authenticate: () => Caller): Caller | Failure {
  try {
    return authenticate();
  } catch (thrown) {
    if (thrown instanceof Failure) return thrown;
    throw thrown;
  }
}

/**
 * Whether a request for content has a key of this server. The key of an application behind it in
 * the same field is no wrong one.
 */
export function hasKey({ fields: { apikey } }: Pick<IncomingRequest, 'fields'>): boolean {
  return apikey !== undefined && hasOwnKey(apikey);
}

/** Identifies a caller by its API key; undefined for a wrong one, which counts as wrong. */
export function callerOf(serving: KeyCheck, incoming: IncomingRequest): Caller | undefined {
  try {
    return authenticateRequest(serving, incoming);
  } catch (thrown) {
    if (thrown instanceof Failure) return undefined;
    throw thrown;
  }
}

/**
 * Returns a request without the identity of its user: a page of another site may call as anonymous,
 * but not as the user whose browser shows it.
 */
export function withoutUser(incoming: IncomingRequest): IncomingRequest {
  const claims = { ...incoming.claims, user: undefined, roles: undefined };
  const fields = without(incoming.fields, ['authorization', 'cookie'], []);
  const anonymous = { ...incoming, fields, claims, certificate: undefined };
  const known = identified.get(incoming);
  // Without its cookie, the token of a session is another one; any other key counts once.
  const isSession = fields.apikey?.startsWith(sessionPrefix);
  if (known !== undefined && isSession !== true) identified.set(anonymous, known);
  return anonymous;
}

/**
 * Returns the trailer fields of a request without those that only a trusted proxy may send, in any
 * spelling: a proxy sends them in the header.
 */
export function trailersOf(
  { config }: { readonly config: Config },
  trailers: FieldList,
): FieldList {
  return withoutSpellings(trailers, identityFieldsOf(config));
}

/** Returns fields without some names, in any spelling except those in `kept`. */
function without(fields: Fields, names: readonly string[], kept: readonly string[]): Fields {
  const cgiNames = new Set(names.map(cgiName));
  const found = Object.keys(fields).filter(
    (name) => cgiNames.has(cgiName(name)) && !kept.includes(name),
  );
  if (found.length === 0) return fields;
  const others = Object.create(null) as Record<string, string | undefined>;
  Object.assign(others, fields);
  for (const one of found) Reflect.deleteProperty(others, one);
  return others;
}
