import { rm } from 'node:fs/promises';
import { createServer, type Server as HttpServer, type ServerOptions } from 'node:http';
import { createServer as createTlsServer, type Server as HttpsServer } from 'node:https';
import { connect, type AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Listen } from '../config/config.ts';
import { Failure } from '../model/failure.ts';
import {
  connectionsMax,
  headerBlockBytesMax,
  headerFieldsMax,
  headersTimeoutMs,
  keepAliveTimeoutMs,
  lingerMs,
  requestLineBytesMax,
  requestTimeoutMs,
  tlsHandshakeTimeoutMs,
} from '../model/limits.ts';
import { sayLast, type Connections } from './connections.ts';
import type { Certificates } from './tls/certificates.ts';

/** What answers HTTP/1.1 on a port, in the clear or over TLS. */
export type Listener = HttpServer | HttpsServer;

/** A bare HTTP/1.1 server with the limits of contract §10, not yet listening. */
export function createHttpServer(
  connections: Connections,
  shouldUpgrade: (upgrade: string) => boolean,
): HttpServer {
  return limited(createServer(httpOptions(shouldUpgrade)), connections);
}

/** The same over TLS, with the certificate that each client asks for. */
export function createHttpsServer(
  connections: Connections,
  shouldUpgrade: (upgrade: string) => boolean,
  certificates: Certificates,
): HttpsServer {
  const server = createTlsServer({
    ...httpOptions(shouldUpgrade),
    handshakeTimeout: tlsHandshakeTimeoutMs,
    ALPNProtocols: ['h2', 'http/1.1'],
    SNICallback: (name, done) => {
      const context = certificates.contextFor(name);
      done(
        context === undefined ? new Error(`There is no certificate for ${name}.`) : null,
        context,
      );
    },
  });
  certificates.serve(server);
  return limited(server, connections);
}

function httpOptions(shouldUpgrade: (upgrade: string) => boolean): ServerOptions {
  return {
    maxHeaderSize: headerBlockBytesMax + requestLineBytesMax,
    headersTimeout: headersTimeoutMs,
    requestTimeout: requestTimeoutMs,
    connectionsCheckingInterval: 1_000,
    keepAliveTimeout: keepAliveTimeoutMs,
    insecureHTTPParser: false,
    // The door looks at Host itself, so that its refusal is as clear as every other.
    requireHostHeader: false,
    noDelay: true,
    shouldUpgradeCallback: ({ headers }) => shouldUpgrade(headers.upgrade ?? ''),
  };
}

function limited<L extends Listener>(server: L, connections: Connections): L {
  server.maxConnections = connectionsMax;
  // One more than is allowed, so that the door sees that there are too many instead of a cut list.
  server.maxHeadersCount = headerFieldsMax + 1;
  connections.watch(server);
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    if (!connections.isOpen(socket)) {
      socket.destroy();
      return;
    }
    const answer = connections.lastAnswer(socket);
    if (answer === undefined) refuseUnreadable(error, socket);
    // What follows a whole request cannot be read: its answer is the last one of the connection.
    else {
      answer.shouldKeepAlive = false;
      // The rest of its request will never come: who waits for that is not left waiting.
      if (!answer.req.complete) setTimeout(() => socket.destroy(), lingerMs).unref();
    }
  });
  return server;
}

/**
 * Starts listening and resolves to the address as a person would write it. Rejects with
 * `unavailable` and one clear line: port in use, no right to it, no such address.
 */
export async function listen(server: Listener, where: Listen): Promise<string> {
  if (where.kind === 'unix') await removeStaleSocket(where.path);
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
function addressText(server: Listener, where: Listen): string {
  const address = server.address();
  if (address === null || typeof address === 'string' || where.kind === 'unix') {
    return `unix:${typeof address === 'string' ? address : ''}`;
  }
  const { address: host, family, port } = address satisfies AddressInfo;
  const shown = host === '::' || host === '0.0.0.0' || host === '127.0.0.1' ? 'localhost' : host;
  const name = family === 'IPv6' && shown !== 'localhost' ? `[${host}]` : shown;
  return `${where.scheme}://${name}:${port}`;
}

function listenFailure(where: Listen, error: NodeJS.ErrnoException): Failure {
  const name = where.kind === 'unix' ? `unix:${where.path}` : `${where.host}:${where.port}`;
  const reasons: Readonly<Record<string, string>> = {
    EADDRINUSE: 'it is in use; stop what listens there or change listen in the ini file',
    EACCES: 'this user may not listen there',
    EADDRNOTAVAIL: 'this machine has no such address',
    ENOTFOUND: 'there is no such host',
  };
  const reason = reasons[error.code ?? ''] ?? error.message;
  return new Failure('unavailable', `Cannot listen on ${name}: ${reason}.`, { cause: error });
}

/** A unix socket outlives the process that made it; one that nobody answers is removed. */
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

/**
 * Answers bytes that are no HTTP request; the parser has given up on the connection (RFC 9112
 * §2.2).
 */
function refuseUnreadable(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const [status, sentence] =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? ['431 Request Header Fields Too Large', 'The header of the request is too large.']
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? ['408 Request Timeout', 'The request did not arrive in time.']
        : ['400 Bad Request', 'The request is not valid HTTP/1.1.'];
  const body = `${sentence}\n`;
  sayLast(
    socket,
    `HTTP/1.1 ${status}\r\nContent-Type: text/plain; charset=utf-8\r\n` +
      `Content-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`,
  );
}
