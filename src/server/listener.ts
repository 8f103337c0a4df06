import { rm, stat } from 'node:fs/promises';
import type { IncomingMessage, Server as HttpServer, ServerOptions } from 'node:http';
import { createServer as createTlsServer, type Server as HttpsServer } from 'node:https';
import { connect, type AddressInfo } from 'node:net';
import { dirname } from 'node:path';
import type { Duplex } from 'node:stream';
import type { ListenAddress } from '../config/addresses.ts';
import { Failure, lacksDescriptors } from '../model/failure.ts';
import { headerBlockBytesMax, headerFieldsMax, requestLineBytesMax } from '../http/limits.ts';
import { tcpKeepAliveMs } from '../outbound/limits.ts';
import type { TryAnswer } from './h1/connection.ts';
import type { Connections } from './h1/connections.ts';
import { createServer } from './h1/node-http.ts';
import { timeouts, type Timeouts } from './h1/timeouts.ts';
import { notTls, parserFailure } from './h1/refusal.ts';
import type { Certificates } from './tls/certificates.ts';
import { allowHalfOpen } from './node-internals.ts';
import { handshakeOptions } from './tls/handshake.ts';
import type { Tls } from './tls/tls.ts';

/** What answers HTTP/1.1 on a port, in the clear or over TLS. */
export type Listener = HttpServer | HttpsServer;

/** Whether a request may leave HTTP for what its Upgrade names. */
type ShouldUpgrade = (message: IncomingMessage) => boolean;

/** How long a listener waits for its clients, and what answers ahead of Node's parser. */
interface ListenerOptions {
  readonly waits?: Timeouts;
  readonly tryAnswer?: TryAnswer | undefined;
}

/** A bare HTTP/1.1 server with the limits of docs/design/failures.md#limits, not yet listening. */
export function createHttpServer(
  connections: Connections,
  shouldUpgrade: ShouldUpgrade,
  { waits = timeouts, tryAnswer }: ListenerOptions = {},
): HttpServer {
  // A connection sets these options of TCP itself when it stays open: each is a system call.
  const options = { ...httpOptions(shouldUpgrade, waits), noDelay: false, keepAlive: false };
  return limited(createServer(options), connections, { waits, tryAnswer });
}

/** The same over TLS, with the certificate that each client names (SNI). */
export function createHttpsServer(
  connections: Connections,
  shouldUpgrade: ShouldUpgrade,
  tls: Pick<Tls, 'acme'> & { readonly certificates: Pick<Certificates, 'contextFor' | 'serve'> },
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
  { headersMs, requestMs, lookMs, keepAliveMs }: Timeouts,
): ServerOptions {
  return {
    maxHeaderSize: headerBlockBytesMax + requestLineBytesMax,
    headersTimeout: headersMs,
    requestTimeout: requestMs,
    connectionsCheckingInterval: lookMs,
    keepAliveTimeout: keepAliveMs,
    insecureHTTPParser: false,
    // The door looks at Host itself, so that its refusal is as clear as every other.
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
  // One more than is allowed, so that validation sees too many fields instead of a cut list.
  server.maxHeadersCount = headerFieldsMax + 1;
  allowHalfOpen(server);
  // Node would take an answer that has been made for one that has been taken, and cut it.
  server.closeIdleConnections = (): void => undefined;
  connections.watch(server, watch);
  server.on('error', (error) => {
    if (lacksDescriptors(error)) connections.lacksDescriptors();
    // One of listening is told to whoever has asked for that.
    else if (server.listening) throw error;
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    // The client was told that no more would be read (RFC 9112 §9.6).
    if (error.code === 'HPE_CLOSED_CONNECTION') return;
    if (error.code === 'ERR_SSL_HTTP_REQUEST') connections.refuseInClear(socket, notTls());
    const isOver = error.code === 'ECONNRESET' || !socket.writable;
    if (error.code === 'ERR_TLS_HANDSHAKE_TIMEOUT') connections.passed('handshake_time', socket);
    // Before the end of a TLS handshake no HTTP answer can be sent.
    if (isOver || !connections.isOpen(socket)) socket.destroy();
    else connections.refuse(socket, parserFailure(error, connections.hasHead(socket)));
  });
  return server;
}

/**
 * Starts listening and resolves to the address as a person would write it. Rejects with
 * `unavailable` and one clear line: port in use, no right to it, no such address or folder, a file
 * where a socket should be.
 */
export async function listen(server: Listener, where: ListenAddress): Promise<string> {
  if (where.kind === 'unix') await prepareSocketPath(where);
  await new Promise<void>((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException): void => {
      reject(listenFailure(where, error));
    };
    server.once('error', failed);
    const at =
      where.kind === 'unix' ? { path: where.path } : { host: where.host, port: where.port };
    server.listen(at, () => {
      server.off('error', failed);
      resolve();
    });
  });
  return addressText(server, where);
}

/** The URL under which a listening server is reached, or its unix socket. */
function addressText(server: Listener, where: ListenAddress): string {
  const address = server.address();
  if (address === null || typeof address === 'string' || where.kind === 'unix') {
    return `unix:${typeof address === 'string' ? address : ''}`;
  }
  const { address: host, family, port } = address satisfies AddressInfo;
  const shown = host === '::' || host === '0.0.0.0' || host === '127.0.0.1' ? 'localhost' : host;
  const name = family === 'IPv6' && shown !== 'localhost' ? `[${host}]` : shown;
  return `${where.scheme}://${name}:${port}`;
}

/** What is said of an address that cannot be listened on; one line. */
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
 * A unix socket outlives the process that made it; one that nobody answers is removed. What is no
 * socket stays, and is told of, as is a folder that is not there, which binding calls forbidden.
 */
async function prepareSocketPath(where: ListenAddress & { readonly kind: 'unix' }): Promise<void> {
  const { path } = where;
  const there = await stat(path).catch(() => undefined);
  if (there?.isSocket() === true) await removeStaleSocket(path);
  else if (there !== undefined) throw cannotListen(where, 'something that is no socket is there');
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

async function removeStaleSocket(path: string): Promise<void> {
  const code = await new Promise<string | undefined>((resolve) => {
    const probe = connect(path, () => {
      probe.destroy();
      resolve(undefined);
    });
    probe.once('error', (error: NodeJS.ErrnoException) => {
      resolve(error.code);
    });
  });
  if (code === 'ECONNREFUSED') await rm(path, { force: true });
}
