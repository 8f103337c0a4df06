import { Socket } from 'node:net';
import { Agent, Pool, type buildConnector, type Dispatcher } from 'undici';
import { headerBlockBytesMax } from '../http/limits.ts';
import { outboundConnectionsMax } from './limits.ts';
import type { OneShotRequest } from './one-shot-request.ts';
import { newConnection } from './connection.ts';
import { Corks } from './fast/corks.ts';
import { OutboundExchange } from './exchange.ts';
import { PlainPools } from './fast/plain-pools.ts';

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
    connectBy: buildConnector.connector,
    request: Dispatcher.DispatchOptions,
    handler: OutboundExchange | OneShotRequest,
  ): void {
    const agent = createAgent(connectBy, timeoutMs);
    agent.dispatch(request, handler);
    close(agent);
  }

  const plain = new PlainPools({
    connect: connectTo,
    timeoutMs,
    corks: new Corks(),
    handOver(exchange, { options }, socket, begun) {
      dispatchAlone(connectedBy(askedAlready(socket, begun)), options, exchange);
    },
  });

  return {
    dispatch(request, handler, how) {
      if (how === 'alone' || shared.closed) dispatchAlone(connectTo, request, handler);
      else if (!(handler instanceof OutboundExchange && plain.send(request, handler))) {
        shared.dispatch(request, handler);
      }
    },
    async close() {
      if (!shared.closed) close(shared);
      await plain.close();
      // What plain connections have handed over is among it.
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

/** The way to a connection that is there, unless it has ended. */
function connectedBy(socket: Socket): buildConnector.connector {
  return (_, callback) => {
    // Never at once: undici would not notice.
    process.nextTick(() => {
      // For another one, where it is given one that has ended, undici would ask without end.
      if (socket.destroyed) callback(new Error('The connection has ended.'), null);
      else callback(null, socket);
    });
  };
}

/**
 * A connection on which a request has been sent already, as one on which it is about to be: what is
 * written first goes nowhere, and then comes what had come of the answer.
 */
function askedAlready(socket: Socket, begun: Buffer): Socket {
  const write = socket.write.bind(socket);
  socket.write = () => {
    socket.write = write;
    process.nextTick(() => {
      socket.push(begun);
    });
    return true;
  };
  return socket;
}

function cutOff(): Error {
  return new Error('This server is about to end.');
}
