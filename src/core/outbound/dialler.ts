import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { isIdempotent } from '../http/request.ts';
import type { PrivatePlace } from '../values/network/unix-socket.ts';
import { type Connect, guardedConnector } from './connector.ts';
import { type Lookup, createLookup } from './dns-lookup.ts';
import { OutboundExchange, type OutboundExchangeParts, type SourceResponse } from './exchange.ts';
import { isLostConnection } from './failure.ts';
import { Http1Client } from './h1/http1-client.ts';
import { Http2Client } from './h2/http2-client.ts';
import { type OneShotOptions, OneShotRequest, type OneShotResponse } from './one-shot-request.ts';
import type { ConnectionChoice, OutgoingRequest, ResponseHandler } from './outgoing-request.ts';
import type { ServerPlace } from './place.ts';

/** A request to another server. */
export interface OutboundRequest extends OutboundExchangeParts, OutgoingRequest {
  readonly method: string;
  /** The content; it is destroyed if the server does not read it. */
  readonly body: Readable | undefined;
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
  /** Private networks and unix sockets that it may connect to. */
  readonly allowPrivate: readonly PrivatePlace[];
  readonly connectTimeoutMs: number;
  readonly timeoutMs: number;
  readonly ca?: readonly string[] | undefined;
  readonly lookup?: Lookup;
  readonly localAddress?: string | undefined;
  /**
   * Whether the servers speak HTTP/2; `exchange` and requests for another protocol are in HTTP/1.1
   * all the same.
   */
  readonly isHttp2?: boolean;
  /** The name of this server in Via, of requests that have none; `exchange` adds it to all. */
  readonly via?: string | undefined;
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
  const { connectTimeoutMs, timeoutMs, connected, via, isHttp2 = false } = options;
  const connect = createConnector(options);
  const clients = createClients({ connect, timeoutMs, isHttp2, connected });

  function begin(request: OutboundRequest, how: ConnectionChoice): OutboundExchange {
    const started = new OutboundExchange(request);
    if (request.signal.aborted) return started;
    clients.send(request, started, how);
    started.startWithin(connectTimeoutMs + (request.timeoutMs ?? timeoutMs));
    return started;
  }

  return {
    send(given) {
      const request = hasVia(given.fields) ? given : withVia(given, via);
      // It may break before it is sent. Without a listener, that would end the process.
      request.body?.on('error', () => undefined);
      const first = begin(request, 'pooled');
      const giveUp = (failure: unknown): never => {
        // A client does not destroy content that it has not begun to send.
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
    exchange(given) {
      const request = withVia(given, via);
      const started = new OneShotRequest(request, timeoutMs, (again) => {
        clients.sendHttp1(request, again, 'alone');
      });
      if (request.signal?.aborted !== true) clients.sendHttp1(request, started, 'pooled');
      return started.answer;
    },
    close: () => clients.close(),
    cut: () => {
      clients.cut();
    },
  };
}

function hasVia(fields: readonly string[]): boolean {
  return fields.some((name, at) => at % 2 === 0 && name.toLowerCase() === 'via');
}

function withVia<T extends { readonly fields: readonly string[] }>(
  request: T,
  via: string | undefined,
): T {
  if (via === undefined) return request;
  return { ...request, fields: [...request.fields, 'via', `1.1 ${via}`] };
}

/** Makes the connector of a dialler alone, for connections that carry another protocol. */
export function createConnector(options: Omit<DiallerOptions, 'timeoutMs'>): Connect {
  const { ca, lookup = createLookup(), localAddress } = options;
  return guardedConnector({ ...options, ca, lookup, localAddress });
}

/** The clients of a dialler. */
interface Clients {
  /** Sends a request in the version of HTTP that the servers speak. */
  send(request: OutgoingRequest, handler: ResponseHandler, how: ConnectionChoice): void;
  sendHttp1: Clients['send'];
  /** Waits for the requests in flight, then closes the connections. */
  close(): Promise<void>;
  /** Destroys all connections. No request is sent any more. */
  cut(): void;
}

/** The options of createClients. */
interface ClientsOptions extends Pick<DiallerOptions, 'timeoutMs' | 'isHttp2'> {
  readonly connect: Connect;
  readonly connected: DiallerOptions['connected'] | undefined;
}

/** Makes clients. `timeoutMs` limits the waits for a header section and for content. */
function createClients({ connect, timeoutMs, isHttp2, connected }: ClientsOptions): Clients {
  const { connect: connectTo, cut } = cuttable(connect, connected);
  const http1 = new Http1Client({ connect: connectTo, timeoutMs });
  const http2 = isHttp2 === true ? new Http2Client({ connect: connectTo, timeoutMs }) : undefined;
  return {
    send(request, handler, how) {
      const isHttp1 = http2 === undefined || request.upgrade !== undefined;
      (isHttp1 ? http1 : http2).send(request, handler, how);
    },
    sendHttp1: (request, handler, how) => {
      http1.send(request, handler, how);
    },
    async close() {
      await Promise.all([http1.close(), http2?.close()]);
    },
    cut,
  };
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
    connect(to, callback) {
      connect(to, (...connected) => {
        const [, socket] = connected;
        if (isCut) {
          socket?.destroy();
          callback(cutOff(), null);
          return;
        }
        if (socket !== null) {
          sockets.add(socket);
          socket.once('close', () => sockets.delete(socket));
          const ended = counted?.(nameOf(to));
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

/** The origin of a server, as OutgoingRequest has it. */
function nameOf({ url, socketPath }: ServerPlace): string {
  return socketPath === undefined ? url.origin : `unix:${socketPath}`;
}

function cutOff(): Error {
  return new Error('This server is stopping.');
}
