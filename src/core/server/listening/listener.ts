import { rename, rm, stat } from 'node:fs/promises';
import {
  connect,
  createServer,
  type AddressInfo,
  type ListenOptions as ListenOptionsOfNode,
  type Server,
  type Socket,
} from 'node:net';
import { dirname } from 'node:path';
import type { Duplex } from 'node:stream';
import { createServer as createTlsServer } from 'node:tls';
import type { ListenAddress } from '../../config/addresses.ts';
import { defaultPorts, type Scheme } from '../../values/network/authority.ts';
import { Failure, lacksDescriptors } from '../../values/failure.ts';
import { tcpKeepAliveMs } from '../../outbound/limits.ts';
import type { Http1Handlers } from '../h1/connection.ts';
import type { Connections } from '../h1/connections.ts';
import { timeouts, type Timeouts } from '../h1/timeouts.ts';
import { notTls } from '../h1/refusal.ts';
import type { Certificates } from '../tls/certificates.ts';
import { bindPath, ownPath, type ListeningSocket } from '../../../cli/serve/inherited-sockets.ts';
import { handshakeOptions } from '../tls/handshake.ts';
import type { Tls } from '../tls/tls.ts';
import { takenPortAdvice } from './port-owner.ts';

/** A server of HTTP/1.1 on a port, in the clear or over TLS. */
export type Listener = Server;

/** The timeouts of a listener, and who takes HTTP/2 in the clear. */
interface ListenerOptions {
  readonly waits?: Timeouts;
  readonly serveHttp2?: (socket: Socket, first: Buffer) => void;
}

/**
 * Makes an HTTP/1.1 server with the limits of docs/design/failures.md#limits, not yet listening.
 */
export function createHttpServer(
  connections: Connections,
  handlers: Http1Handlers,
  { waits = timeouts, serveHttp2 }: ListenerOptions = {},
): Listener {
  // Keep-alive of TCP costs four system calls: `Connections` sets it when a connection lasts.
  const server = createServer({ allowHalfOpen: true, noDelay: true });
  return watched(server, connections, { ...handlers, waits, serveHttp2 });
}

/** Makes the same over TLS, with the certificate for the name that a client sends (SNI). */
export function createHttpsServer(
  connections: Connections,
  handlers: Http1Handlers,
  tls: Pick<Tls, 'acme'> & {
    readonly certificates: Pick<Certificates, 'handshakeContext' | 'serve'>;
  },
  { waits = timeouts }: ListenerOptions = {},
): Listener {
  const server = createTlsServer({
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: tcpKeepAliveMs,
    handshakeTimeout: waits.handshakeMs,
    ...handshakeOptions(tls),
  });
  tls.certificates.serve(server);
  server.on('tlsClientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    if (error.code === 'ERR_SSL_HTTP_REQUEST') connections.refuseInClear(socket, notTls());
    if (error.code === 'ERR_TLS_HANDSHAKE_TIMEOUT') connections.passed('handshake_time', socket);
    // No HTTP answer can be sent before the end of a TLS handshake.
    socket.destroy();
  });
  return watched(server, connections, { ...handlers, waits });
}

function watched(
  server: Listener,
  connections: Connections,
  watch: Parameters<Connections['watch']>[1],
): Listener {
  connections.watch(server, watch);
  server.on('error', (error) => {
    if (lacksDescriptors(error)) connections.lacksDescriptors();
    // An error while a port opens rejects the promise of `listen`.
    else if (server.listening) throw error;
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
