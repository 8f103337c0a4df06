import type { TLSSocket } from 'node:tls';
import { isTrustedPeer } from '../http/forwarded.ts';
import type { Fields } from '../http/request.ts';
import { openDoor, type Entrance as Opened } from '../http/target.ts';
import type { Scheme } from '../model/authority.ts';
import type { Caller } from '../model/key.ts';
import type { Told } from '../visitors/visitor.ts';
import type { Serving } from './serving.ts';
import type { RequestMessage } from './request-message.ts';

/** A request that the door has let in, with what a trusted proxy says of whoever sent it. */
export interface Entrance extends Opened {
  readonly told: Told;
}

const nothingTold: Told = { user: undefined, roles: undefined, country: undefined };

/** Takes a request through the door; throws `invalid` for what it does not let in. */
export function enter({ config }: Serving, message: RequestMessage): Entrance {
  const peerAddress = message.socket.remoteAddress ?? '';
  const opened = openDoor(
    {
      method: message.method ?? '',
      target: message.url ?? '',
      httpVersion: message.httpVersion,
      rawFields: message.rawHeaders,
      secure: isSecure(message),
      peerAddress,
    },
    config.server,
  );
  const { userHeader, rolesHeader } = config.auth;
  const { countryHeader } = config.geo;
  if (userHeader === undefined && rolesHeader === undefined && countryHeader === undefined) {
    return { ...opened, told: nothingTold };
  }
  const { fields } = opened;
  // What only a trusted proxy may say is taken off, lest a fetched source believe it.
  if (!isTrustedPeer(peerAddress, config.server.trustProxy)) {
    const names = [userHeader, rolesHeader, countryHeader].filter((name) => name !== undefined);
    return { ...opened, fields: without(fields, names), told: nothingTold };
  }
  const valueOf = (name: string | undefined) => (name === undefined ? undefined : fields[name]);
  const told = {
    user: valueOf(userHeader),
    roles: valueOf(rolesHeader),
    country: valueOf(countryHeader),
  };
  return { ...opened, told };
}

/** Whether a request came over TLS. */
export function isSecure({ socket }: Pick<RequestMessage, 'socket'>): boolean {
  return (socket as Partial<TLSSocket>).encrypted === true;
}

/** The scheme of the URLs that are asked for on a connection. */
export function schemeOf(message: Pick<RequestMessage, 'socket'>): Scheme {
  return isSecure(message) ? 'https' : 'http';
}

/** Who sent a request, by its API key; throws `unauthenticated` or `rate_limited`. */
export function identify(serving: Serving, { fields, address }: Entrance): Caller {
  return serving.authenticate({ apikey: fields.apikey, address });
}

/**
 * A request as somebody without a name would have sent it: a page of another site may ask as
 * anybody, but not as the user who looks at it.
 */
export function withoutUser(entrance: Entrance): Entrance {
  const told = { ...entrance.told, user: undefined, roles: undefined };
  return { ...entrance, fields: without(entrance.fields, ['cookie']), told };
}

/** Also under a name with `_`, which many servers behind us would take for the same. */
function without(fields: Fields, names: readonly string[]): Fields {
  const found = Object.keys(fields).filter((one) => names.includes(one.replaceAll('_', '-')));
  if (found.length === 0) return fields;
  const others = Object.create(null) as Record<string, string | undefined>;
  Object.assign(others, fields);
  for (const one of found) Reflect.deleteProperty(others, one);
  return others;
}
