import type { Cidr } from './cidr.ts';

/** A unix socket that may be connected to, with the text that was parsed. */
export interface UnixSocket {
  readonly text: string;
  /** Its path; undefined for every socket. */
  readonly socketPath: string | undefined;
}

/** What the ini file permits although it is private: a network, or a unix socket. */
export type PrivatePlace = Cidr | UnixSocket;

/** A server on a unix socket, in the form of nginx. */
interface UnixUrl {
  readonly socketPath: string;
  /** The path, and a query, at the server; empty if the text has none. */
  readonly target: string;
}

/** The beginning of the text of a unix socket. */
export const unixScheme = 'unix:';

/** The permission for every unix socket. */
export const everySocket: UnixSocket = { text: unixScheme, socketPath: undefined };

/** The bytes of the path of a socket: what `sun_path` of Linux holds (unix(7)). */
const socketPathBytesMax = 107;

/**
 * Parses `unix:/run/app.sock`, or `unix:/run/app.sock:/base/` with a path at the server behind it;
 * undefined for any other text.
 */
export function parseUnixUrl(text: string): UnixUrl | undefined {
  const [, socketPath, target = ''] =
    /^unix:(\/[^:\s\\?#*]*[^:\s\\?#*/])(?::(\/.*))?$/.exec(text) ?? [];
  if (socketPath === undefined || hasDotSegment.test(socketPath)) return undefined;
  return Buffer.byteLength(socketPath) > socketPathBytesMax ? undefined : { socketPath, target };
}

/** Two spellings of one path would pass for two sockets. */
const hasDotSegment = /\/\.{0,2}(?:\/|$)/;

/** Parses the text of a socket without a path behind it; undefined for any other one. */
export function parseUnixSocket(text: string): UnixSocket | undefined {
  const parsed = parseUnixUrl(text);
  return parsed?.target === '' ? { text, socketPath: parsed.socketPath } : undefined;
}

/** How to write a socket that a text names in the way of nginx, as `http://unix:/run/app.sock`. */
export function unixSpelling(text: string): string | undefined {
  const url = text.replace(/^https?:\/\/(?=unix:)/i, '');
  return url !== text && parseUnixUrl(url) !== undefined ? url : undefined;
}

/** Whether places permit a unix socket. */
export function permitsSocket(places: readonly PrivatePlace[], path: string): boolean {
  return places.some(
    (place) =>
      'socketPath' in place && (place.socketPath === undefined || place.socketPath === path),
  );
}
