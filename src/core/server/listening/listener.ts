import { rename, rm, stat } from 'node:fs/promises';
import type { IncomingMessage, Server as HttpServer, ServerOptions } from 'node:http';
import { createServer as createTlsServer, type Server as HttpsServer } from 'node:https';
import {
  connect,
  type AddressInfo,
  type ListenOptions as ListenOptionsOfNode,
  type Socket,
} from 'node:net';
import { dirname } from 'node:path';
import type { Duplex } from 'node:stream';
import type { ListenAddress } from '../../config/addresses.ts';
import { defaultPorts, type Scheme } from '../../values/network/authority.ts';
import { Failure, lacksDescriptors } from '../../values/failure.ts';
import { headerBlockBytesMax, headerFieldsMax, requestLineBytesMax } from '../../http/limits.ts';
import { tcpKeepAliveMs } from '../../outbound/limits.ts';
import type { TryAnswer } from '../h1/connection.ts';
import type { Connections } from '../h1/connections.ts';
import { createServer } from '../h1/node-http.ts';
import { timeouts, type Timeouts } from '../h1/timeouts.ts';
import { notTls, parserFailure } from '../h1/refusal.ts';
import type { Certificates } from '../tls/certificates.ts';
import { bindPath, ownPath, type ListeningSocket } from '../../../cli/serve/inherited-sockets.ts';
import { allowHalfOpen } from './node-internals.ts';
import { handshakeOptions } from '../tls/handshake.ts';
import type { Tls } from '../tls/tls.ts';
import { takenPortAdvice } from './port-owner.ts';

/** A server of HTTP/1.1 on a port, in the clear or over TLS. */
export type Listener = HttpServer | HttpsServer;

/** Whether a request may switch to the protocol in its Upgrade. */
type ShouldUpgrade = (message: IncomingMessage) => boolean;

/** The timeouts of a listener, its fast path, and who takes HTTP/2 in the clear. */
interface ListenerOptions {
  readonly waits?: Timeouts;
  readonly tryAnswer?: TryAnswer | undefined;
  readonly serveHttp2?: (socket: Socket, first: Buffer) => void;
}

/**
 * Makes an HTTP/1.1 server with the limits of docs/design/failures.md#limits, not yet listening.
 */
export function createHttpServer(
  connections: Connections,
  shouldUpgrade: ShouldUpgrade,
  { waits = timeouts, tryAnswer, serveHttp2 }: ListenerOptions = {},
): HttpServer {
  // Keep-alive of TCP costs four system calls: `Connections` sets it when a connection lasts.
  const options = { ...httpOptions(shouldUpgrade, waits), keepAlive: false };
  return limited(createServer(options), connections, { waits, tryAnswer, serveHttp2 });
}

/** Makes the same over TLS, with the certificate for the name that a client sends (SNI). */
export function createHttpsServer(
  connections: Connections,
  shouldUpgrade: ShouldUpgrade,
  tls: Pick<Tls, 'acme'> & {
    readonly certificates: Pick<Certificates, 'handshakeContext' | 'serve'>;
  },
  { waits = timeouts, tryAnswer }: ListenerOptions = {},
): HttpsServer {
  const server = createTlsServer({
    ...httpOptions(shouldUpgrade, waits),
    handshakeTimeout: waits.handshakeMs,
    ...handshakeOptions(tls),
  });
  tls.certificates.serve(server);
  return limited(server, connections, { waits, tryAnswer });
}

function httpOptions(
  shouldUpgrade: ShouldUpgrade,
  { headersMs, checkMs, keepAliveMs }: Timeouts,
): ServerOptions {
  return {
    maxHeaderSize: headerBlockBytesMax + requestLineBytesMax,
    headersTimeout: headersMs,
    // Connections limits the time of a request by what reads its content.
    requestTimeout: 0,
    connectionsCheckingInterval: checkMs,
    keepAliveTimeout: keepAliveMs,
    insecureHTTPParser: false,
    // `parseRequest` checks Host, so that its refusal is as clear as all others.
    requireHostHeader: false,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: tcpKeepAliveMs,
    shouldUpgradeCallback: shouldUpgrade,
  };
}

function limited<L extends Listener>(
  server: L,
  connections: Connections,
  watch: Parameters<Connections['watch']>[1],
): L {
  // One more than the limit, so that validation sees too many fields instead of a cut list.
  server.maxHeadersCount = headerFieldsMax + 1;
  allowHalfOpen(server);
  // Node would close a connection as idle although the client has not read the written answer yet.
  server.closeIdleConnections = (): void => undefined;
  connections.watch(server, watch);
  server.on('error', (error) => {
    if (lacksDescriptors(error)) connections.lacksDescriptors();
    // An error while a port opens rejects the promise of `listen`.
    else if (server.listening) throw error;
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    // The client already has an answer that says that the connection closes (RFC 9112 §9.6).
    if (error.code === 'HPE_CLOSED_CONNECTION') return;
    if (error.code === 'ERR_SSL_HTTP_REQUEST') connections.refuseInClear(socket, notTls());
    const isOver = error.code === 'ECONNRESET' || !socket.writable;
    if (error.code === 'ERR_TLS_HANDSHAKE_TIMEOUT') connections.passed('handshake_time', socket);
    // No HTTP answer can be sent before the end of a TLS handshake.
    if (isOver || !connections.isOpen(socket)) socket.destroy();
    else connections.refuse(socket, parserFailure(error));
  });
  return server;
}

/** How a server gets the socket that it listens on. */
export interface ListenOptions {
  /** A socket that this process has inherited, already bound to the address. */
  readonly inherited?: ListeningSocket | undefined;
  /** Whether the leading process of several opens the socket, once for all. */
  readonly isWorker?: boolean;
}

/** The address of a listener. */
interface Listening {
  /** The address as a person would write it. */
  readonly address: string;
  /** The unix socket that the server has created, and has to remove. */
  readonly ownPath: string | undefined;
}

/**
 * Starts listening. Rejects with `unavailable` and one clear line: port in use, no permission, no
 * such address or folder, a file at the path of a socket.
 */
export async function listen(
  server: Listener,
  where: ListenAddress,
  { inherited, isWorker = false }: ListenOptions = {},
): Promise<Listening> {
  if (inherited !== undefined) {
    const isOpen = await open(server, { fd: inherited.fd }).then(
      () => true,
      (error: unknown) => {
        // The leading process closes it with the last of its workers.
        if (isWorker) return false;
        throw listenFailure(where, error as NodeJS.ErrnoException);
      },
    );
    if (isOpen) return listening(server, where, { inherited, isWorker });
  }
  try {
    if (where.kind === 'unix') await openUnix(server, where, isWorker);
    else await open(server, { host: where.host, port: where.port });
  } catch (error) {
    if (error instanceof Failure) throw error;
    const failed = error as NodeJS.ErrnoException;
    if (failed.code !== 'EADDRINUSE' || where.kind === 'unix') throw listenFailure(where, failed);
    throw cannotListen(where, await takenPortAdvice(where), failed);
  }
  return listening(server, where, { isWorker });
}

function listening(
  server: Listener,
  where: ListenAddress,
  { inherited, isWorker }: ListenOptions,
): Listening {
  const path = isWorker === true ? undefined : ownPath(where, inherited);
  return { address: addressText(server, where), ownPath: path };
}

/** Listens, or rejects with the error of the system. */
function open(server: Listener, at: ListenOptionsOfNode | { readonly fd: number }): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(at, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

/**
 * Listens on a unix socket, which gets its path when it can take connections. Replaces a socket
 * that no process serves.
 */
async function openUnix(
  server: Listener,
  where: ListenAddress & { readonly kind: 'unix' },
  isWorker: boolean,
): Promise<void> {
  const created = bindPath(where.path);
  if (!isWorker) {
    await requireFreePath(where);
    await rm(created, { force: true });
  }
  await open(server, { path: created });
  await rename(created, where.path).catch((error: unknown) => {
    // Another worker, which shares the socket, has renamed it.
    if (!isWorker) throw error;
  });
}

/** Returns the URL of a listening server, or its unix socket. */
function addressText(server: Listener, where: ListenAddress): string {
  if (where.kind === 'unix') return `unix:${where.path}`;
  const address = server.address();
  if (address === null || typeof address === 'string') return '';
  return listenUrl(where.scheme, address);
}

/** The URL of a listener, for messages; it leaves out the default port of the scheme. */
export function listenUrl(scheme: Scheme, { address: host, family, port }: AddressInfo): string {
  const shown = host === '::' || host === '0.0.0.0' || host === '127.0.0.1' ? 'localhost' : host;
  const name = family === 'IPv6' && shown !== 'localhost' ? `[${host}]` : shown;
  const suffix = String(port) === defaultPorts[scheme] ? '' : `:${port}`;
  return `${scheme}://${name}${suffix}`;
}

/** Explains in one line why the server cannot listen on an address. */
export function listenFailure(where: ListenAddress, error: NodeJS.ErrnoException): Failure {
  const reasons: Readonly<Record<string, string>> = {
    EADDRINUSE: 'it is in use; stop what listens there or change listen in the ini file',
    EACCES: whyForbidden(where),
    EADDRNOTAVAIL: 'this machine has no such address',
    ENOTFOUND: 'there is no such host',
    ...(where.kind === 'unix' && { EINVAL: 'the path is too long for a socket' }),
  };
  return cannotListen(where, reasons[error.code ?? ''] ?? error.message, error);
}

const privilegedPortMax = 1023;

function whyForbidden(where: ListenAddress): string {
  if (where.kind === 'unix' || where.port > privilegedPortMax) return 'permission denied';
  return (
    `permission denied: ports up to ${privilegedPortMax} need root or CAP_NET_BIND_SERVICE ` +
    '(systemd: AmbientCapabilities=CAP_NET_BIND_SERVICE; a file: setcap cap_net_bind_service=+ep ' +
    'on the node binary)'
  );
}

function cannotListen(where: ListenAddress, reason: string, cause?: Error): Failure {
  const name = where.kind === 'unix' ? `unix:${where.path}` : `${where.host}:${where.port}`;
  return new Failure('unavailable', `Cannot listen on ${name}: ${reason}.`, { cause });
}

/**
 * Throws `unavailable` unless a server may create a unix socket: for a socket that another process
 * serves, for a file of another kind, and for a missing folder, which the system reports as a
 * missing permission.
 */
async function requireFreePath(where: ListenAddress & { readonly kind: 'unix' }): Promise<void> {
  const { path } = where;
  const there = await stat(path).catch(() => undefined);
  if (there?.isSocket() === true) {
    if (await isServed(path)) {
      throw listenFailure(where, Object.assign(new Error(), { code: 'EADDRINUSE' }));
    }
  } else if (there !== undefined) throw cannotListen(where, 'something that is no socket is there');
  else if (await isMissing(dirname(path))) throw cannotListen(where, 'there is no such folder');
}

async function isMissing(path: string): Promise<boolean> {
  try {
    await stat(path);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT';
  }
}

/**
 * Whether a process accepts connections of a unix socket; true if this process may not connect to
 * it.
 */
async function isServed(path: string): Promise<boolean> {
  const code = await new Promise<string | undefined>((resolve) => {
    const probe = connect(path, () => {
      probe.destroy();
      resolve(undefined);
    });
    probe.once('error', (error: NodeJS.ErrnoException) => {
      resolve(error.code);
    });
  });
  return code !== 'ECONNREFUSED';
}
