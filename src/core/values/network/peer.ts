import type { Scheme } from './authority.ts';

/** The address of a client that has none, or whose proxy hides it: it is in no network. */
export const unknownAddress = 'unknown';

/** The address of a client as text: an IP address, or `unknown`; never an empty text. */
export type ClientAddress = `${string}.${string}` | `${string}:${string}` | typeof unknownAddress;

/**
 * The remote side of a connection, as it was when its listener accepted it: the system forgets the
 * address of a connection that its client has reset.
 */
export interface Peer {
  /** The kind of the listener. The file mode of a unix socket says who may connect to it. */
  readonly listener: 'tcp' | 'unix';
  readonly address: ClientAddress;
  /** Returns `address:port` of this side; `localhost` for a unix socket, or if that is unknown. */
  readonly local: () => string;
  /** The TLS on the connection; undefined in the clear. */
  readonly tls: { getProtocol(): string | null } | undefined;
}

/** Returns the scheme of the URLs on a connection. */
export function schemeOf({ tls }: Pick<Peer, 'tls'>): Scheme {
  return tls === undefined ? 'http' : 'https';
}

/**
 * Returns an address of the system: of an IPv4-mapped IPv6 address, the IPv4 address; `unknown` for
 * a missing one.
 */
export function clientAddress(text: string | undefined): ClientAddress {
  if (text === undefined) return unknownAddress;
  const plain = text.startsWith('::ffff:') && text.includes('.') ? text.slice(7) : text;
  return isAddress(plain) ? plain : unknownAddress;
}

function isAddress(text: string): text is ClientAddress {
  return text.includes('.') || text.includes(':');
}
