import { unixScheme } from '../values/network/unix-socket.ts';

/** Where a server is, and the name that it goes by. */
export interface ServerPlace {
  /** Its URL; that of a unix socket has the host localhost. */
  readonly url: URL;
  /** The path of its unix socket; undefined for an address. */
  readonly socketPath: string | undefined;
  /** The name that TLS checks, if it is not the host of the URL. */
  readonly serverName: string | undefined;
}

/** Where the server of an origin is; see OutgoingRequest. */
export function placeOf(origin: string, serverName?: string): ServerPlace {
  if (!origin.startsWith(unixScheme)) {
    return { url: new URL(origin), socketPath: undefined, serverName };
  }
  const socketPath = origin.slice(unixScheme.length);
  return { url: new URL(socketOrigin), socketPath, serverName: undefined };
}

/** The origin that a server on a unix socket goes by. */
export const socketOrigin = 'http://localhost';
