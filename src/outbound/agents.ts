import { Socket } from 'node:net';
import { Agent, Pool, type buildConnector, type Dispatcher } from 'undici';
import { headerBlockBytesMax } from '../http/limits.ts';
import { outboundConnectionsMax } from './limits.ts';
import type { OneShotRequest } from './one-shot-request.ts';
import { newConnection } from './connection.ts';
import { OutboundExchange } from './exchange.ts';
import { GetClient } from './fast/get-client.ts';

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
