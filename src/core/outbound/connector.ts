import {
  isIP,
  Socket,
  type LookupFunction,
  type OnReadOpts,
  type TcpNetConnectOpts,
} from 'node:net';
import type { buildConnector } from 'undici';
import type { Cidr } from '../values/network/cidr.ts';
import { loadUndici } from '../values/lazy-packages.ts';
import { addressProblem } from './address.ts';
import { detectTruncation } from './connection-end.ts';
import { refusedAddress } from './failure.ts';
import { otherFamilyCode } from './problem.ts';
import { answerBehindFailureMs, tcpKeepAliveMs } from './limits.ts';
import type { Lookup } from './dns-lookup.ts';

/**
 * Opens a connection, as undici expects it. With `onread` (see net.connect), a connection without
 * TLS is read into that buffer, and not as a stream. It writes `preamble` first, ahead of TLS.
 */
export type Connect = (
  options: buildConnector.Options & {
    readonly onread?: OnReadOpts;
    readonly preamble?: Buffer | undefined;
  },
  callback: buildConnector.Callback,
) => void;

/** The options of guardedConnector. */
interface ConnectorOptions {
  readonly allowPrivate: readonly Cidr[];
  readonly connectTimeoutMs: number;
  readonly ca: readonly string[] | undefined;
  readonly lookup: Lookup;
  readonly localAddress: string | undefined;
  /** Whether TLS offers HTTP/2 first (ALPN). */
  readonly isHttp2: boolean;
}

/**
 * Makes a connector for undici that checks each address, after it has resolved the name for this
 * connection: a later lookup cannot give another address. `connectTimeoutMs` limits the lookup, the
 * connection and TLS together. With `localAddress`, connections start from that address, and go
 * only to addresses of its family.
 */
export function guardedConnector(given: ConnectorOptions): Connect {
  const { allowPrivate, lookup, localAddress } = given;
  const family = localAddress === undefined ? undefined : isIP(localAddress);
  const guarded = guardedLookup(lookup, { allowPrivate, family });
  const way = { lookup: guarded, autoSelectFamily: true };
  const from = localAddress === undefined ? {} : { localAddress };
  const settings = { ...way, ...tlsSettings(given) };
  let connect: buildConnector.connector | undefined;

  return ({ servername, onread, preamble, ...options }, callback) => {
    const { buildConnector } = loadUndici();
    connect ??= buildConnector(settings);
    // Node calls `lookup` for names only, not for addresses.
    const problem = isIP(options.hostname) && addressProblem(options.hostname, allowPrivate);
    if (problem) {
      process.nextTick(callback, refusedAddress(problem), null);
      return;
    }
    if (isIP(options.hostname) && !isOfFamily(isIP(options.hostname), family)) {
      process.nextTick(callback, otherFamily(), null);
      return;
    }
    if (options.protocol !== 'https:') {
      // Without TLS, undici would connect to the server name, which it takes from the Host field.
      const connectTcp = onread === undefined ? connect : buildConnector({ ...settings, onread });
      connectTcp({ ...options, ...from }, (...[error, socket]) => {
        if (error === null) {
          if (preamble !== undefined) socket.write(preamble);
          callback(null, readOnAfterFailure(socket));
        } else callback(error, null);
      });
      return;
    }
    const port = Number(options.port) || 443;
    const to = { ...way, ...from, host: options.hostname, port };
    const tcp = tcpConnection(to, preamble);
    // SNI has names only (RFC 6066 §3): for an address, TLS checks the host of the connection.
    const named = servername === undefined || isIP(servername) ? {} : { servername };
    connect({ ...options, ...named, httpSocket: tcp }, (...[error, socket]) => {
      if (error !== null) {
        tcp.destroy();
        callback(error, null);
        return;
      }
      // TLS has inherited it from TCP, which needs it for data that is not read yet.
      socket.allowHalfOpen = false;
      socket.once('close', () => tcp.destroy());
      detectTruncation(socket, tcp);
      callback(null, readOnAfterFailure(socket));
    });
  };
}

function tlsSettings({ connectTimeoutMs, ca, isHttp2 }: ConnectorOptions) {
  return {
    timeout: connectTimeoutMs,
    allowH2: isHttp2,
    preferH2: isHttp2,
    // NODE_TLS_REJECT_UNAUTHORIZED must not change it.
    rejectUnauthorized: true,
    ...(ca !== undefined && { ca: [...ca] }),
  };
}

/**
 * A TCP connection for TLS. Node distinguishes the end of TCP from the end of TLS only if they are
 * separate streams.
 */
function tcpConnection(to: TcpNetConnectOpts, preamble: Buffer | undefined): Socket {
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
  }: { readonly allowPrivate: readonly Cidr[]; readonly family: number | undefined },
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
