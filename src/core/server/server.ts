import { rmSync } from 'node:fs';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { type ListeningSocket, matchSockets } from '../../cli/serve/inherited-sockets.ts';
import type { ListenAddress } from '../config/addresses.ts';
import { createSharedLimits } from '../fair/shared-limits.ts';
import type { PreparableExchange, UpgradeRequest } from '../pipeline/exchange.ts';
import { PreparedReplies } from '../pipeline/prepared.ts';
import { RequestLog } from '../pipeline/record/request-log.ts';
import { openMetrics } from '../pipeline/record/server-metrics.ts';
import { RequestHandler } from '../pipeline/request-handler.ts';
import type { ResponderParts } from '../pipeline/responder.ts';
import type { Serving } from '../pipeline/serving.ts';
import type { AccessLog, LiveEntries, VisitEntries } from '../report/access-entry.ts';
import { type LimitLog, createLimitLog } from '../report/limit-log.ts';
import type { Log } from '../report/log.ts';
import { type CacheUse, joinedUse } from '../report/memory-use.ts';
import type { Metric } from '../report/metrics.ts';
import type { RequestMetrics } from '../report/request-metrics.ts';
import { defaultPorts } from '../values/network/authority.ts';
import { type ConnectionLimits, connectionLimits } from './h1/connection-limiter.ts';
import type { Http1Handlers } from './h1/connection.ts';
import { Connections } from './h1/connections.ts';
import { Tunnels } from './h1/tunnels.ts';
import { UpgradeHandler } from './h1/upgrade-handler.ts';
import { switchesProtocol } from './h1/upgrade.ts';
import { Http2Connections } from './h2/connections.ts';
import { acceptConnections, peerOf } from './listening/accept.ts';
import {
  type ListenOptions,
  type Listener,
  createHttpServer,
  createHttpsServer,
  listen,
} from './listening/listener.ts';
import { chooseProtocol } from './tls/handshake.ts';
import type { Tls } from './tls/tls.ts';
import { type Sockets, createSockets, restartClose, stopClose } from './websocket/socket.ts';

/** The surroundings of the port; `monotonicMs` measures durations. */
interface ServerParts {
  readonly serving: () => Serving;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly log: Log;
  readonly access: AccessLog;
  readonly liveAccess: LiveEntries;
  readonly metrics: RequestMetrics;
  /** Gets the port that plain HTTP is redirected to. */
  readonly listensTls: (port: string) => void;
  /** Counts the requests of visitors. */
  readonly visits: VisitEntries;
  readonly newId: () => string;
  readonly monotonicMs: () => number;
  readonly tls: Pick<Tls, 'certificates' | 'acme'>;
}

/** The port: every listener of the configuration, with their websockets. */
export interface Server {
  /** The addresses of the listeners, one text for each. */
  readonly addresses: readonly string[];
  /** Returns the numbers of open connections, requests and websockets. */
  metrics(): readonly Metric[];
  /** Returns the memory that prepared answers use. */
  memory(): CacheUse;
  /**
   * Stops accepting connections, waits for open requests, and closes all that is left after
   * `graceMs`. Resolves to the number of requests and websockets that it cut.
   */
  stop(graceMs: number): Promise<{ readonly cut: number }>;
  /**
   * Stops accepting connections, and waits for the open ones to end: the server closes each with
   * the response to its next request, or by its timeout. Another process has the listening sockets.
   * Resolves when all are closed, after `graceMs`, or when the signal aborts; `stop` follows.
   */
  drain(graceMs: number, signal: AbortSignal): Promise<void>;
}

/** How the port gets its sockets. */
export interface PortOptions {
  /** Sockets that this process, or the leading one of several, has inherited. */
  readonly inherited?: readonly ListeningSocket[];
  /** Whether the leading process of several opens the sockets. */
  readonly isWorker?: boolean;
}

/**
 * Opens the listeners. Rejects with `unavailable` if one cannot be opened, and closes the others.
 */
export async function startServer(
  parts: ServerParts,
  listens: readonly ListenAddress[],
  { inherited = [], isWorker = false }: PortOptions = {},
): Promise<Server> {
  const port = new HttpServer(parts);
  try {
    const sockets = await matchSockets(listens, inherited);
    for (const [at, where] of listens.entries()) {
      await port.listen(where, { inherited: sockets[at], isWorker });
    }
  } catch (error) {
    await port.stop(0);
    throw error;
  }
  return port;
}

class HttpServer implements Server {
  readonly addresses: string[] = [];
  readonly #parts: ResponderParts & ServerParts & ConnectionLimits;
  readonly #servers: Listener[] = [];
  readonly #prepared: PreparedReplies[] = [];
  readonly #sockets: Sockets;
  readonly #tunnels: Tunnels;
  readonly #handler: RequestHandler;
  readonly #upgrades: UpgradeHandler;
  readonly #connections: Connections;
  readonly #http2: Http2Connections;
  #tlsPort: string | undefined;
  /** The unix sockets that the port has created. */
  #ownPaths: string[] = [];
  #stopping = false;
  /** Whether another process accepts the connections: this one closes those that it has. */
  #draining = false;

  constructor(parts: ServerParts) {
    const log = createLimitLog(parts);
    const limits: LimitLog = {
      passed: (limit, ...known) => {
        log.passed(limit, ...known);
        if (limit !== 'open_files') return;
        this.#connections.closeIdle();
        this.#http2.closeIdle();
      },
    };
    this.#parts = {
      ...parts,
      ...connectionLimits(() => parts.serving().config.server),
      limits,
      shared: createSharedLimits(),
    };
    this.#tunnels = new Tunnels({ ...parts, limit: this.#parts.shared.tunnels });
    this.#http2 = new Http2Connections(this.#parts);
    this.#connections = new Connections({
      ...this.#parts,
      refuse: (socket, failure, head) => {
        this.#handler.refuse({ socket, peer: peerOf(socket) }, failure, head);
      },
      ...limits,
    });
    this.#sockets = createSockets(this.#parts);
    const requestLog = new RequestLog(parts);
    const isStopping = (): boolean => this.#stopping;
    const isLast = (): boolean => this.#stopping || this.#draining;
    this.#handler = new RequestHandler({ ...this.#parts, requestLog, isLast });
    this.#upgrades = new UpgradeHandler({
      handler: this.#handler,
      sockets: this.#sockets,
      tunnels: this.#tunnels,
      now: parts.now,
      isStopping,
    });
  }

  async listen(where: ListenAddress, options: ListenOptions): Promise<void> {
    const isTls = where.kind === 'tcp' && where.scheme === 'https';
    // Each listener has its own: answers over TLS and in the clear differ.
    const prepared = new PreparedReplies();
    this.#prepared.push(prepared);
    const handle = (exchange: PreparableExchange): void => {
      this.#handler.handle(exchange, prepared);
    };
    const upgrade = (request: UpgradeRequest): void => {
      this.#upgrades.handle(request);
    };
    const handlers: Http1Handlers = {
      answer: handle,
      switches: (head, peer) => switchesProtocol(head, peer, this.#parts.serving()),
      upgrade,
    };
    const serveHttp2 = (socket: Socket, first?: Buffer): void => {
      this.#http2.serve(socket, { handle, upgrade }, first);
    };
    const server: Listener = isTls
      ? createHttpsServer(this.#connections, handlers, this.#parts.tls)
      : createHttpServer(this.#connections, handlers, { serveHttp2 });
    if (isTls) chooseProtocol(server, serveHttp2);
    const proxies = () => this.#parts.serving().config.server.proxyProtocol;
    acceptConnections(server, where.kind, proxies);
    this.#servers.push(server);
    const { address, ownPath } = await listen(server, where, options);
    this.addresses.push(address);
    if (ownPath !== undefined) this.#ownPaths.push(ownPath);
    if (!isTls) return;
    // The default port comes before all others.
    const port = new URL(address).port || defaultPorts.https;
    if (this.#tlsPort !== undefined && port !== defaultPorts.https) return;
    this.#tlsPort = port;
    this.#parts.listensTls(port);
  }

  metrics(): readonly Metric[] {
    return openMetrics({
      connections: this.#connections.size + this.#http2.size,
      requests: this.#connections.unanswered + this.#http2.unanswered,
      websockets: this.#sockets.size,
      tunnels: this.#tunnels.size,
      shared: this.#parts.shared,
    });
  }

  memory(): CacheUse {
    return joinedUse(
      'prepared answers',
      this.#prepared.map((prepared) => prepared.memory()),
    );
  }

  async drain(graceMs: number, signal: AbortSignal): Promise<void> {
    this.#draining = true;
    // The other process uses the sockets under their paths.
    this.#ownPaths = [];
    const closed = this.#closeListeners();
    this.#http2.drain();
    const sockets = this.#sockets.close(graceMs, restartClose);
    const aborted = new Promise((resolve) => {
      signal.addEventListener('abort', resolve, { once: true });
      if (signal.aborted) resolve(undefined);
    });
    const limit = new AbortController();
    const ended = delay(graceMs, undefined, { signal: limit.signal }).catch(() => undefined);
    await Promise.race([Promise.all([...closed, sockets]), aborted, ended]);
    limit.abort();
  }

  /** Stops accepting connections; each promise resolves when the last one of a listener is over. */
  #closeListeners(): readonly Promise<unknown>[] {
    return this.#servers
      .filter((server) => server.listening)
      .map((server) => new Promise((resolve) => server.close(resolve)));
  }

  async stop(graceMs: number): Promise<{ readonly cut: number }> {
    this.#stopping = true;
    this.#connections.closeIdle();
    const closed = this.#closeListeners();
    for (const path of this.#ownPaths) rmSync(path, { force: true });
    const sockets = this.#sockets.close(graceMs, stopClose);
    const tunnels = this.#tunnels.close(graceMs);
    this.#http2.close();
    let timer: NodeJS.Timeout | undefined;
    await Promise.race([
      Promise.all([this.#connections.settled(), this.#http2.clientsClosed()]),
      new Promise<void>((resolve) => {
        timer = setTimeout(resolve, graceMs);
      }),
    ]);
    clearTimeout(timer);
    const cut = this.#connections.unanswered + this.#http2.unanswered;
    const cutSockets = await sockets;
    await tunnels;
    this.#http2.destroyAll();
    this.#connections.destroyAll();
    await Promise.all(closed);
    return { cut: cut + cutSockets };
  }
}
