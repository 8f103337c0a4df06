import type { TLSSocket } from 'node:tls';
import { cgiName } from '../http/fields.ts';
import { isTrustedPeer } from '../http/forwarded.ts';
import type { Fields } from '../http/request.ts';
import { parseRequest, type ValidatedRequest as Opened } from '../http/target.ts';
import type { Scheme } from '../model/authority.ts';
import { keyPrefix, type Caller } from '../model/key.ts';
import { identityFieldsOf, type ProxyClaims } from '../visitors/visitor.ts';
import type { Serving } from './serving.ts';
import type { RequestMessage } from './http-message.ts';

/** A validated request, with what a trusted proxy says about its client. */
export interface IncomingRequest extends Opened {
  readonly claims: ProxyClaims;
}

const noClaims: ProxyClaims = {
  user: undefined,
  roles: undefined,
  country: undefined,
  region: undefined,
  city: undefined,
};

/** Validates a request; throws `invalid` for one that must be refused. */
export function acceptRequest({ config }: Serving, message: RequestMessage): IncomingRequest {
  const peerAddress = message.socket.remoteAddress ?? '';
  const opened = withBearerKey(
    parseRequest(
      {
        method: message.method ?? '',
        target: message.url ?? '',
        httpVersion: message.httpVersion,
        rawFields: message.rawHeaders,
        secure: isSecure(message),
        peerAddress,
      },
      config.server,
    ),
  );
  const identityFields = identityFieldsOf(config);
  if (identityFields.length === 0) return { ...opened, claims: noClaims };
  // What only a trusted proxy may say is removed, lest a fetched source believe it: of the proxy
  // itself what the client wrote under another spelling of the name.
  const isTrusted = isTrustedPeer(peerAddress, config.server.trustProxy);
  const fields = without(opened.fields, identityFields, isTrusted ? identityFields : []);
  if (!isTrusted) return { ...opened, fields, claims: noClaims };
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
  return { ...opened, fields, claims };
}

/** Whether a request came over TLS. */
export function isSecure({ socket }: Pick<RequestMessage, 'socket'>): boolean {
  return (socket as Partial<TLSSocket>).encrypted === true;
}

/** The scheme of the URLs that are asked for on a connection. */
export function schemeOf(message: Pick<RequestMessage, 'socket'>): Scheme {
  return isSecure(message) ? 'https' : 'http';
}

const bearerKey = new RegExp(`^bearer +(${keyPrefix}[A-Za-z0-9_-]+)$`, 'i');

/**
 * An API key as a bearer token (RFC 6750 §2.1) becomes the field `apikey`, unless there is one: it
 * is no token of `[auth] jwt_…`, and none of what sources and caches take Authorization for.
 */
function withBearerKey(opened: Opened): Opened {
  const { authorization } = opened.fields;
  const key = authorization === undefined ? undefined : bearerKey.exec(authorization)?.[1];
  if (key === undefined) return opened;
  const fields = Object.create(null) as Record<string, string | undefined>;
  Object.assign(fields, { apikey: key }, opened.fields);
  delete fields.authorization;
  return { ...opened, fields };
}

/** Who sent a request, by its API key; throws `unauthenticated` or `rate_limited`. */
export function authenticateRequest(
  serving: Serving,
  { fields, address }: IncomingRequest,
): Caller {
  return serving.authenticate({ apikey: fields.apikey, address });
}

/**
 * A request without the identity of its user: a page of another site may call as anonymous, but
 * not as the user who has it open.
 */
export function withoutUser(incoming: IncomingRequest): IncomingRequest {
  const claims = { ...incoming.claims, user: undefined, roles: undefined };
  return { ...incoming, fields: without(incoming.fields, ['cookie'], []), claims };
}

/** Fields without those of some names, in any spelling but those `kept`. */
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
