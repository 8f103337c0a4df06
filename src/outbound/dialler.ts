import { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { Agent, Pool, type buildConnector, type Dispatcher } from 'undici';
import { headerBlockBytesMax } from '../http/limits.ts';
import type { Cidr } from '../model/cidr.ts';
import { isIdempotent } from '../model/method.ts';
import { newConnection } from './connection.ts';
import { guardedConnector } from './connector.ts';
import { OutboundExchange, type OutboundExchangeParts, type SourceResponse } from './exchange.ts';
import { isLostConnection } from './failure.ts';
import { GetClient } from './fast/get-client.ts';
import { outboundConnectionsMax } from './limits.ts';
import { createLookup, type Lookup } from './names.ts';
import { OneShotRequest, type OneShotResponse, type OneShotOptions } from './one-shot-request.ts';

/** A request to another server. */
export interface OutboundRequest extends OutboundExchangeParts {
  /** `scheme://host[:port]` of http or https. */
  readonly origin: string;
  /** Path and query, percent-encoded. */
  readonly target: string;
  readonly method: string;
  /** Name, value, name, value; no Transfer-Encoding, Connection, Keep-Alive, Upgrade or Expect. */
  readonly fields: readonly string[];
  /**
   * Sent at the speed of the other side, and destroyed when that does not want it; chunked without
   * Content-Length.
   */
  readonly body: Readable | undefined;
  /** The protocol to go over to (RFC 9110 §7.8); the source may answer in HTTP all the same. */
  readonly upgrade?: 'websocket';
}

/**
 * The only way out to other servers: pooled connections to addresses that were vetted
 * (docs/design/webhooks.md#addresses, Addresses).
 */
export interface Dialler {
  /**
   * Sends a request and resolves to its answer, whatever its status: redirects are not followed,
   * content is not decoded. Rejects with `bad_gateway` (down, refused address, no HTTP, broken
   * off), `gateway_timeout`, `invalid` (a field that cannot be sent), or the Failure that the body
   * was destroyed with. Where a connection that had been used before ends before an answer begins,
   * an idempotent request without content is sent once more, over a new one (RFC 9110 §9.2.2), and
   * so is any other of which nothing had been sent.
   */
  send(request: OutboundRequest): Promise<SourceResponse>;
  /**
   * Sends a request of a few bytes and reads the beginning of its answer, all of it within
   * `timeoutMs`. Never rejects. Where a connection that had been used before ends before an answer
   * begins, the request is sent once more, over a new one, whatever its method.
   */
  exchange(request: OneShotOptions): Promise<OneShotResponse>;
  /**
   * Lets what is under way end, then closes the connections. A request sent later gets a connection
   * of its own.
   */
  close(): Promise<void>;
  /** Breaks off what is under way; nothing is sent any more. */
  cut(): void;
}

/** How a dialler connects: see createDialler. */
interface DiallerOptions {
  readonly allowPrivate: readonly Cidr[];
  readonly connectTimeoutMs: number;
  readonly timeoutMs: number;
  readonly ca?: readonly string[] | undefined;
  readonly lookup?: Lookup;
  readonly localAddress?: string | undefined;
}

/**
 * Makes a dialler. `connectTimeoutMs` bounds looking a name up, connecting and TLS; `timeoutMs` the
 * wait for the header section, and for each further piece of content, and the whole of a brief
 * exchange. `lookup` is that of createLookup unless given, `ca` (PEM: who may vouch for a server)
 * what Node trusts. Connections come from `localAddress`, an address of this machine, where given.
 */
export function createDialler(options: DiallerOptions): Dialler {
  const { connectTimeoutMs, timeoutMs, ca, lookup = createLookup(), localAddress } = options;
  const connect = guardedConnector({ ...options, ca, lookup, localAddress });
  const agents = createAgents({ connect, timeoutMs });

  function dispatch(
    request: OneShotOptions | OutboundRequest,
    handler: OutboundExchange | OneShotRequest,
    how: 'pooled' | 'alone' = 'pooled',
  ): void {
    const { origin, target: path, method, body = null } = request;
    const headers = request.fields as string[];
    const upgrade = 'upgrade' in request ? request.upgrade : undefined;
    // Nothing is sent behind another request on its connection: undici need not mark one as busy.
    const options = { origin, path, method, headers, body, blocking: false };
    agents.dispatch(upgrade === undefined ? options : { ...options, upgrade }, handler, how);
  }

  function begin(request: OutboundRequest, how: 'pooled' | 'alone'): OutboundExchange {
    const started = new OutboundExchange(request);
    if (request.signal.aborted) return started;
    dispatch(request, started, how);
    started.startWithin(connectTimeoutMs + timeoutMs);
    return started;
  }

  return {
    send(request) {
      const first = begin(request, 'pooled');
      const giveUp = (failure: unknown): never => {
        // undici leaves alone what it had not begun to send.
        request.body?.destroy();
        throw failure;
      };
      return first.answer.catch((failure: unknown) => {
        const lost =
          first.wasUsed && !first.responded && isLostConnection((failure as Error).cause);
        const isRepeatable = request.body === undefined && isIdempotent(request.method);
        if (lost && (isRepeatable || !first.hasBegun)) {
          // What else is in the pool may have ended as well.
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

/** The pools of connections of a dialler. */
interface Agents {
  /**
   * Sends a request over a connection of its origin's pool, or over a new one that is its alone;
   * once closed, always so.
   */
  dispatch(
    request: Dispatcher.DispatchOptions,
    handler: OutboundExchange | OneShotRequest,
    how: 'pooled' | 'alone',
  ): void;
  /** Lets what is under way end, then closes the connections. */
  close(): Promise<void>;
  /** Breaks off what is under way; nothing is sent any more. */
  cut(): void;
}

/** Makes pools; `timeoutMs` bounds the wait for a header section and for each piece of content. */
export function createAgents({
  connect,
  timeoutMs,
}: {
  readonly connect: buildConnector.connector;
  readonly timeoutMs: number;
}): Agents {
  const { connect: connectTo, cut } = cuttable(connect);
  const shared = createAgent(connectTo, timeoutMs);
  const closing = new Set<Promise<void>>();

  function close(agent: Agent): void {
    const closed = agent.close().finally(() => closing.delete(closed));
    closing.add(closed);
  }

  /** Sends a request over connections of an agent that is its alone. */
  function dispatchAlone(
    request: Dispatcher.DispatchOptions,
    handler: OutboundExchange | OneShotRequest,
  ): void {
    const agent = createAgent(connectTo, timeoutMs);
    agent.dispatch(request, handler);
    close(agent);
  }

  const getClient = new GetClient({ connect: connectTo, timeoutMs });

  return {
    dispatch(request, handler, how) {
      if (how === 'alone' || shared.closed) dispatchAlone(request, handler);
      else if (!(handler instanceof OutboundExchange && getClient.send(request, handler))) {
        shared.dispatch(request, handler);
      }
    },
    async close() {
      if (!shared.closed) close(shared);
      await getClient.close();
      await Promise.all(closing);
    },
    cut,
  };
}

/** A way to connections that can all be broken off, after which there are none any more. */
function cuttable(connect: buildConnector.connector): {
  readonly connect: buildConnector.connector;
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
        }
        callback(...connected);
      });
    },
    cut() {
      isCut = true;
      // Without an error, content that lasts as long as its connection would look whole.
      for (const socket of sockets) socket.destroy(cutOff());
    },
  };
}

function createAgent(connect: buildConnector.connector, timeoutMs: number): Agent {
  return new Agent({
    connect,
    factory: (origin, options: Pool.Options) =>
      new Pool(origin, { ...options, factory: newConnection }),
    // HTTP/1.1 alone: one way of framing, pausing and failing to know.
    allowH2: false,
    connections: outboundConnectionsMax,
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    maxHeaderSize: headerBlockBytesMax,
  });
}

function cutOff(): Error {
  return new Error('This server is about to end.');
}
