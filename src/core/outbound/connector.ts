import {
  type LookupFunction,
  type NetConnectOpts,
  type OnReadOpts,
  Socket,
  connect as connectTcp,
  isIP,
} from 'node:net';
import { connect as connectTls } from 'node:tls';
import { createLruCache } from '../values/lru-cache.ts';
import type { PrivatePlace } from '../values/network/unix-socket.ts';
import { addressProblem, socketProblem } from './address.ts';
import { detectTruncation } from './connection-end.ts';
import type { Lookup } from './dns-lookup.ts';
import { connectTimedOut, otherFamilyCode, refusedAddress } from './failure.ts';
import { tcpKeepAliveMs } from './limits.ts';
import type { ServerPlace } from './place.ts';

/** How long a response is awaited on a connection that can no longer be written to. */
const answerBehindFailureMs = 100;

/** TLS sessions that are remembered, to be resumed. */
const tlsSessionsMax = 100;

/**
 * Opens a connection. With `onread` (see net.connect), a connection without TLS is read into that
 * buffer, and not as a stream. It writes `preamble` first, ahead of TLS.
 */
export type Connect = (
  to: ServerPlace & {
    readonly onread?: OnReadOpts | undefined;
    readonly preamble?: Buffer | undefined;
    /** Whether TLS offers HTTP/2 first (ALPN). */
    readonly isHttp2?: boolean;
  },
  callback: (...connected: Connected) => void,
) => void;

type Connected = [error: null, socket: Socket] | [error: Error, socket: null];

/** The options of guardedConnector. */
interface ConnectorOptions {
  /** Private networks and unix sockets that it may connect to. */
  readonly allowPrivate: readonly PrivatePlace[];
  readonly connectTimeoutMs: number;
  readonly ca: readonly string[] | undefined;
  readonly lookup: Lookup;
  readonly localAddress: string | undefined;
}

/**
 * Makes a connector that checks each address, after it has resolved the name for this connection: a
 * later lookup cannot give another address. `connectTimeoutMs` limits the lookup, the connection
 * and TLS together. With `localAddress`, connections start from that address, and go only to
 * addresses of its family.
 */
export function guardedConnector(options: ConnectorOptions): Connect {
  const { allowPrivate, lookup, localAddress, connectTimeoutMs } = options;
  const family = localAddress === undefined ? undefined : isIP(localAddress);
  const guarded = guardedLookup(lookup, { allowPrivate, family });
  const secure = tlsOpener(options);

  return (place, callback) => {
    const { url, socketPath, onread, preamble } = place;
    const hostname = hostOf(url);
    const isTls = url.protocol === 'https:';
    const refusal = refusalOf(place, allowPrivate, family);
    if (refusal !== undefined) {
      process.nextTick(callback, refusal, null);
      return;
    }
    const to: NetConnectOpts =
      socketPath === undefined
        ? {
            host: hostname,
            port: Number(url.port) || (isTls ? 443 : 80),
            lookup: guarded,
            autoSelectFamily: true,
            ...(localAddress !== undefined && { localAddress }),
          }
        : { path: socketPath };
    const socket = isTls
      ? secure(tcpConnection(to, preamble), place)
      : connectTcp({ ...to, ...(onread && { onread }) });
    const timer = setTimeout(() => socket.destroy(connectTimedOut()), connectTimeoutMs);
    const failed = (error: Error): void => {
      clearTimeout(timer);
      callback(error, null);
    };
    socket.once('error', failed);
    socket.once(isTls ? 'secureConnect' : 'connect', () => {
      clearTimeout(timer);
      socket.off('error', failed);
      if (!isTls) {
        socket.setNoDelay(true).setKeepAlive(true, tcpKeepAliveMs);
        if (preamble !== undefined) socket.write(preamble);
      }
      callback(null, readOnAfterFailure(socket));
    });
  };
}

/** Why there may be no connection to a place; a name is checked when it has been resolved. */
function refusalOf(
  { url, socketPath }: ServerPlace,
  allowPrivate: readonly PrivatePlace[],
  family: number | undefined,
): Error | undefined {
  if (socketPath !== undefined) {
    const problem = socketProblem(socketPath, allowPrivate);
    return problem === undefined ? undefined : refusedAddress(problem);
  }
  // Node calls `lookup` for names only, not for addresses.
  const hostname = hostOf(url);
  if (isIP(hostname) === 0) return undefined;
  const problem = addressProblem(hostname, allowPrivate);
  if (problem !== undefined) return refusedAddress(problem);
  return isOfFamily(isIP(hostname), family) ? undefined : otherFamily();
}

/** The host of a URL, an IPv6 address without its brackets. */
function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '');
}

/** Makes a function that begins TLS over a TCP connection, and resumes earlier sessions. */
function tlsOpener({ ca }: ConnectorOptions): (tcp: Socket, to: Parameters<Connect>[0]) => Socket {
  const sessions = createLruCache<Buffer>(tlsSessionsMax);
  return (tcp, { url, serverName, isHttp2 = false }) => {
    const host = hostOf(url);
    // SNI has names only (RFC 6066 §3): for an address, TLS checks the host of the connection.
    const name = serverName === undefined || isIP(serverName) !== 0 ? host : serverName;
    const key = `${name} ${url.host} ${isHttp2}`;
    const session = sessions.get(key);
    const socket = connectTls({
      ...{ socket: tcp, host },
      ...(isIP(name) === 0 && { servername: name }),
      ...(session !== undefined && { session }),
      ALPNProtocols: isHttp2 ? ['h2', 'http/1.1'] : ['http/1.1'],
      // NODE_TLS_REJECT_UNAUTHORIZED must not change it.
      rejectUnauthorized: true,
      ...(ca !== undefined && { ca: [...ca] }),
    });
    socket.on('session', (made) => sessions.set(key, made));
    socket.once('error', () => sessions.delete(key));
    socket.once('close', () => tcp.destroy());
    // TLS inherits it from TCP, which needs it for data that is not read yet.
    socket.allowHalfOpen = false;
    detectTruncation(socket, tcp);
    return socket;
  };
}

/**
 * A TCP connection for TLS. Node distinguishes the end of TCP from the end of TLS only if they are
 * separate streams.
 */
function tcpConnection(to: NetConnectOpts, preamble: Buffer | undefined): Socket {
  // The end of TCP must not discard data that TLS has decrypted and the client has not read yet.
  const tcp = new Socket({ allowHalfOpen: true });
  tcp.setNoDelay(true).setKeepAlive(true, tcpKeepAliveMs);
  // Ahead of the listener of TLS, which begins its handshake then.
  if (preamble !== undefined) tcp.once('connect', () => tcp.write(preamble));
  // TLS must be set up first.
  process.nextTick(() => {
    if (!tcp.destroyed) tcp.connect(to);
  });
  return tcp;
}

/** A lookup without the addresses that the dialler refuses; it fails if none is left. */
function guardedLookup(
  lookup: Lookup,
  {
    allowPrivate,
    family,
  }: { readonly allowPrivate: readonly PrivatePlace[]; readonly family: number | undefined },
): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname).then(
      (all) => {
        const found = all.filter((one) => isOfFamily(one.family, family));
        if (found.length === 0 && all.length > 0) {
          callback(otherFamily(), []);
          return;
        }
        const problems: string[] = [];
        const allowed = found.filter(({ address }) => {
          const problem = addressProblem(address, allowPrivate);
          if (problem !== undefined) problems.push(problem);
          return problem === undefined;
        });
        const [first] = allowed;
        if (first === undefined) {
          callback(refusedAddress(`${hostname}: ${problems.join('; ')}`), []);
        } else if (options.all) {
          callback(null, [...allowed]);
        } else {
          callback(null, first.address, first.family);
        }
      },
      (error: unknown) => {
        callback(error as Error, []);
      },
    );
  };
}

function isOfFamily(family: number, wanted: number | undefined): boolean {
  return wanted === undefined || family === wanted;
}

function otherFamily(): Error {
  const error = new Error('The server has no address of the family of local_address.');
  return Object.assign(error, { code: otherFamilyCode });
}

type Done = (error?: Error | null) => void;

/**
 * Keeps a connection readable for a moment after a failed write. A server may respond before it has
 * read all of a request, and close the connection (RFC 9112 §9.6). Node destroys the connection at
 * the first failed write, and would discard the response, which is not read yet.
 */
function readOnAfterFailure(socket: Socket): Socket {
  const [write, writev] = [socket._write.bind(socket), socket._writev?.bind(socket)];
  const delayed = (done: Done) => (error?: Error | null) => {
    if (!error || socket.destroyed) done(error);
    else delayFailure(socket, error, done);
  };
  socket._write = (chunk, encoding, done) => {
    write(chunk, encoding, delayed(done));
  };
  if (writev !== undefined) {
    socket._writev = (chunks, done) => {
      writev(chunks, delayed(done));
    };
  }
  return socket;
}

/** Reports a failed write once the connection has ended, or after a timeout. */
function delayFailure(socket: Socket, error: Error, done: Done): void {
  const report = (): void => {
    clearTimeout(timer);
    socket.off('close', report);
    done(error);
  };
  const timer = setTimeout(report, answerBehindFailureMs);
  socket.once('close', report);
}
