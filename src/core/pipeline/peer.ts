import type { Duplex } from 'node:stream';
import { plainAddress } from '../http/reading/forwarded.ts';
import type { Scheme } from '../values/network/authority.ts';

/** The remote side of a connection; a socket is one. */
export interface Peer {
  /** Undefined for a unix socket. */
  readonly remoteAddress?: string | undefined;
  /** True over TLS. */
  readonly encrypted?: boolean;
  /** The version of TLS, such as `TLSv1.3`. */
  getProtocol?(): string | null;
}

/** Returns the address of a client; empty for a unix socket. */
export function peerAddress(peer: Peer | Duplex): string {
  return plainAddress((peer as Peer).remoteAddress ?? '');
}

/** Whether a connection uses TLS. */
export function isSecure(peer: Peer): boolean {
  return peer.encrypted === true;
}

/** Returns the scheme of the URLs on a connection. */
export function schemeOf(peer: Peer): Scheme {
  return isSecure(peer) ? 'https' : 'http';
}
