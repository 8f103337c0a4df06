import { Socket } from 'node:net';
import { Agent, Pool, type buildConnector, type Dispatcher } from 'undici';
import { headerBlockBytesMax, outboundConnectionsMax } from '../model/limits.ts';
import { newConnection } from './connection.ts';

/** The pools of connections of a dialler. */
export interface Agents {
  /**
   * Sends a request over a connection of its origin's pool, or over a new one that is its alone;
   * once closed, always so.
   */
  dispatch(
    request: Dispatcher.DispatchOptions,
    handler: Dispatcher.DispatchHandler,
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
  const sockets = new Set<Socket>();
  let isCut = false;

  const connectUncut: buildConnector.connector = (options, callback) => {
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
  };

  const createAgent = (): Agent =>
    new Agent({
      connect: connectUncut,
      factory: (origin, options: Pool.Options) =>
        new Pool(origin, { ...options, factory: newConnection }),
      // HTTP/1.1 alone: one way of framing, pausing and failing to know.
      allowH2: false,
      connections: outboundConnectionsMax,
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
      maxHeaderSize: headerBlockBytesMax,
    });
  const shared = createAgent();
  const closing = new Set<Promise<void>>();

  function close(agent: Agent): void {
    const closed = agent.close().finally(() => closing.delete(closed));
    closing.add(closed);
  }

  return {
    dispatch(request, handler, how) {
      const agent = how === 'alone' || shared.closed ? createAgent() : shared;
      agent.dispatch(request, handler);
      if (agent !== shared) close(agent);
    },
    async close() {
      if (!shared.closed) close(shared);
      await Promise.all(closing);
    },
    cut() {
      isCut = true;
      // Without an error, content that lasts as long as its connection would look whole.
      for (const socket of sockets) socket.destroy(cutOff());
    },
  };
}

function cutOff(): Error {
  return new Error('This server is about to end.');
}
