import { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import type { Agent, buildConnector, Dispatcher, Pool } from 'undici';
import { headerBlockBytesMax } from '../http/limits.ts';
import type { Cidr } from '../values/network/cidr.ts';
import { loadUndici } from '../values/lazy-packages.ts';
import { isIdempotent } from '../http/method.ts';
import { newConnection } from './connection.ts';
import { guardedConnector, type Connect } from './connector.ts';
import { OutboundExchange, type OutboundExchangeParts, type SourceResponse } from './exchange.ts';
import { isLostConnection } from './failure.ts';
import { GetClient } from './fast/get-client.ts';
import { outboundConnectionsMax } from './limits.ts';
import { createLookup, type Lookup } from './dns-lookup.ts';
import { Http2Client } from './h2/http2-client.ts';
import { sendByNode } from './node-request.ts';
import type { RequestExtras } from './request-extras.ts';
import { OneShotRequest, type OneShotResponse, type OneShotOptions } from './one-shot-request.ts';

/** A request to another server. */
export interface OutboundRequest extends OutboundExchangeParts, RequestExtras {
  /** `scheme://host[:port]` of http or https. */
  readonly origin: string;
  /** Path and query, percent-encoded. */
  readonly target: string;
  readonly method: string;
  /** Name, value, name, value; no Transfer-Encoding, Connection, Keep-Alive, Upgrade or Expect. */
  readonly fields: readonly string[];
  /**
   * The content, sent at the speed of the server, and chunked without Content-Length. It is
   * destroyed if the server does not read it.
   */
  readonly body: Readable | undefined;
  /** The protocol to switch to (RFC 9110 §7.8). The server may also respond in HTTP. */
  readonly upgrade?: 'websocket';
  /** The name that TLS checks, if it is not that of the Host field. */
  readonly serverName?: string | undefined;
  /** How often the same request has been sent to other servers before. */
  readonly resends?: number;
}

/**
 * Sends all requests to other servers, over pooled connections to checked addresses
 * (docs/design/webhooks.md#addresses).
 */
export interface Dialler {
  /**
   * Sends a request and resolves to its response, with any status. It follows no redirects and does
   * not decode content. Rejects with `bad_gateway` (no connection, a refused address, not HTTP, an
   * incomplete response), `gateway_timeout`, `invalid` (a field that cannot be sent), or the
   * Failure with which the body was destroyed. If a reused connection ends before a response
   * begins, the dialler repeats the request once over a new connection, provided that the request
   * is idempotent and has no content (RFC 9110 §9.2.2), or that no byte of it was sent.
   */
  send(request: OutboundRequest): Promise<SourceResponse>;
  /**
   * Sends a short request and reads the beginning of its response, all within `timeoutMs`. Never
   * rejects. If a reused connection ends before a response begins, the dialler repeats the request
   * once over a new connection, with any method.
   */
  exchange(request: OneShotOptions): Promise<OneShotResponse>;
  /**
   * Waits for the requests in flight, then closes the connections. A later request gets a new
   * connection, which closes after it.
   */
  close(): Promise<void>;
  /** Destroys all connections. No request is sent any more. */
  cut(): void;
}

/** The options of createDialler. */
interface DiallerOptions {
  readonly allowPrivate: readonly Cidr[];
  readonly connectTimeoutMs: number;
  readonly timeoutMs: number;
  readonly ca?: readonly string[] | undefined;
  readonly lookup?: Lookup;
  readonly localAddress?: string | undefined;
  /** Whether the servers speak HTTP/2; `exchange` and websockets are in HTTP/1.1 all the same. */
  readonly isHttp2?: boolean;
  /** Called for each connection, with its origin; returns what is called at its end. */
  readonly connected?: (origin: string) => () => void;
}

/**
 * Makes a dialler. `connectTimeoutMs` limits the lookup, the connection and TLS together;
 * `timeoutMs` limits the wait for the header section and for each piece of content, and the whole
 * of an `exchange`. The default of `lookup` is createLookup, that of `ca` (trusted certification
 * authorities, PEM) is Node's. `localAddress` is the address of this machine from which connections
 * start.
 */
export function createDialler(options: DiallerOptions): Dialler {
  const { connectTimeoutMs, timeoutMs, connected, isHttp2 = false } = options;
  const connect = createConnector(options);
  const agents = createAgents({ connect, timeoutMs, isHttp2, ...(connected && { connected }) });

  function dispatch(
    request: OneShotOptions | OutboundRequest,
    handler: OutboundExchange | OneShotRequest,
    how: 'pooled' | 'alone' = 'pooled',
  ): void {
    const { origin, target: path, method, body = null } = request;
    const headers = request.fields as string[];
    const { upgrade, serverName, ...extras } = request as Partial<OutboundRequest>;
    const { trailers, expectsContinue, preamble } = extras;
    const limitMs = handler instanceof OutboundExchange ? handler.timeoutMs : undefined;
    // No requests are pipelined, so undici need not mark a connection as blocked.
    const options = {
      ...{ origin, path, method, headers, body, blocking: false },
      ...(limitMs !== undefined && { headersTimeout: limitMs, bodyTimeout: limitMs }),
      ...(serverName !== undefined && { servername: serverName }),
      ...(trailers !== undefined && { trailers }),
      ...(expectsContinue === true && { expectsContinue }),
      ...(preamble !== undefined && { preamble }),
    };
    agents.dispatch(upgrade === undefined ? options : { ...options, upgrade }, handler, how);
  }

  function begin(request: OutboundRequest, how: 'pooled' | 'alone'): OutboundExchange {
    const started = new OutboundExchange(request);
    if (request.signal.aborted) return started;
    dispatch(request, started, how);
    started.startWithin(connectTimeoutMs + (request.timeoutMs ?? timeoutMs));
    return started;
  }

  return {
    send(request) {
      const first = begin(request, 'pooled');
      const giveUp = (failure: unknown): never => {
        // undici does not destroy content that it has not begun to send.
        request.body?.destroy();
        throw failure;
      };
      return first.answer.catch((failure: unknown) => {
        const lost =
          first.wasUsed && !first.responded && isLostConnection((failure as Error).cause);
        const isRepeatable = request.body === undefined && isIdempotent(request.method);
        if (lost && (isRepeatable || !first.hasBegun)) {
          // The other connections of the pool may have ended as well.
          return begin(request, 'alone').answer.catch(giveUp);
        }
        return giveUp(failure);
      });
    },
    exchange(request) {
      const started = new OneShotRequest(request, timeoutMs, (again) => {
        dispatch(request, again, 'alone');
      });
      if (request.signal?.aborted !== true) dispatch(request, started);
      return started.answer;
    },
    close: () => agents.close(),
    cut: () => {
      agents.cut();
    },
  };
}

/** Makes the connector of a dialler alone, for connections that carry another protocol. */
export function createConnector(options: Omit<DiallerOptions, 'timeoutMs'>): Connect {
  const { ca, lookup = createLookup(), localAddress, isHttp2 = false } = options;
  return guardedConnector({ ...options, ca, lookup, localAddress, isHttp2 });
}

/** The connection pools of a dialler. */
interface Agents {
  /**
   * Sends a request over a connection of the pool of its origin, or, with `alone` or after close,
   * over a new connection that no other request uses.
   */
  dispatch(
    request: Dispatcher.DispatchOptions & RequestExtras,
    handler: OutboundExchange | OneShotRequest,
    how: 'pooled' | 'alone',
  ): void;
  /** Waits for the requests in flight, then closes the connections. */
  close(): Promise<void>;
  /** Destroys all connections. No request is sent any more. */
  cut(): void;
}

/** The options of createAgents. */
interface AgentsOptions extends Pick<DiallerOptions, 'timeoutMs' | 'isHttp2' | 'connected'> {
  readonly connect: Connect;
}

/** Makes pools. `timeoutMs` limits the wait for a header section and for each piece of content. */
export function createAgents({ connect, timeoutMs, isHttp2, connected }: AgentsOptions): Agents {
  const { connect: connectTo, cut } = cuttable(connect, connected);
  let shared: Agent | undefined;
  let isClosed = false;
  const closing = new Set<Promise<void>>();

  function close(agent: Agent): void {
    const closed = agent.close().finally(() => closing.delete(closed));
    closing.add(closed);
  }

  /** Sends a request over a connection that no other request uses. */
  function dispatchAlone(
    request: Dispatcher.DispatchOptions,
    handler: OutboundExchange | OneShotRequest,
    connectAlone = connectTo,
  ): void {
    const agent = createAgent(connectAlone, timeoutMs);
    agent.dispatch(request, handler);
    close(agent);
  }

  const client = { connect: connectTo, timeoutMs };
  const getClient = new GetClient(client);
  const http2Client = isHttp2 === true ? new Http2Client(client) : undefined;

  /** Sends a request over a connection that begins with other bytes. */
  function dispatchBehind(
    preamble: Buffer,
    request: Dispatcher.DispatchOptions & RequestExtras,
    handler: OutboundExchange,
  ): void {
    const connectBehind: Connect = (options, callback) => {
      connectTo({ ...options, preamble }, callback);
    };
    const way = { connect: connectBehind, timeoutMs };
    if (isHttp2 === true) new Http2Client(way).send(request, handler, 'alone');
    else if (hasExtras(request)) sendByNode(request, handler, way);
    else dispatchAlone(request, handler, connectBehind);
  }

  return {
    dispatch(request, handler, how) {
      const isExchange = handler instanceof OutboundExchange;
      const isExtra = hasExtras(request);
      const { preamble } = request;
      if (preamble !== undefined && isExchange) dispatchBehind(preamble, request, handler);
      else if (http2Client !== undefined && isExchange) http2Client.send(request, handler, how);
      else if (isExtra && isExchange) sendByNode(request, handler, client);
      else if (how === 'alone' || isClosed) dispatchAlone(request, handler);
      else if (!(isExchange && getClient.send(request, handler))) {
        shared ??= createAgent(connectTo, timeoutMs);
        shared.dispatch(request, handler);
      }
    },
    async close() {
      if (shared !== undefined && !isClosed) close(shared);
      isClosed = true;
      await Promise.all([getClient.close(), http2Client?.close()]);
      await Promise.all(closing);
    },
    cut,
  };
}

/** Whether undici cannot send a request. */
function hasExtras({ trailers, expectsContinue }: RequestExtras): boolean {
  return trailers !== undefined || expectsContinue === true;
}

/** A connector whose connections can all be destroyed; it then makes no further ones. */
function cuttable(
  connect: Connect,
  counted: DiallerOptions['connected'],
): {
  readonly connect: Connect;
  readonly cut: () => void;
} {
  const sockets = new Set<Socket>();
  let isCut = false;
  return {
    connect(options, callback) {
      connect(options, (...connected) => {
        const [, socket] = connected;
        if (isCut) {
          socket?.destroy();
          callback(cutOff(), null);
          return;
        }
        if (socket instanceof Socket) {
          sockets.add(socket);
          socket.once('close', () => sockets.delete(socket));
          const ended = counted?.(`${options.protocol}//${options.host ?? options.hostname}`);
          if (ended !== undefined) socket.once('close', ended);
        }
        callback(...connected);
      });
    },
    cut() {
      isCut = true;
      // Without an error, content that ends with its connection would seem complete.
      for (const socket of sockets) socket.destroy(cutOff());
    },
  };
}

function createAgent(connect: buildConnector.connector, timeoutMs: number): Agent {
  const undici = loadUndici();
  return new undici.Agent({
    connect,
    factory: (origin, options: Pool.Options) =>
      new undici.Pool(origin, { ...options, factory: newConnection }),
    // With HTTP/1.1 only, there is one kind of framing, flow control and failure to handle.
    allowH2: false,
    connections: outboundConnectionsMax,
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    maxHeaderSize: headerBlockBytesMax,
  });
}

function cutOff(): Error {
  return new Error('This server is stopping.');
}
