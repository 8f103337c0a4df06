import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { lingerMs, pipelinedRequestsMax, stalledMs } from '../model/limits.ts';

/** What is known of one open connection. */
interface Connection {
  /** Requests that have come and are not answered yet. */
  unanswered: number;
  /** The newest of their answers. */
  last: ServerResponse | undefined;
  /** Requests behind the first, each waiting for its turn. */
  readonly waiting: ((isOpen: boolean) => void)[];
}

/**
 * The connections of a server: each answers one request after the other, holds no more than it may,
 * and is gone when it has been said goodbye to.
 */
export class Connections {
  readonly #open = new Map<Duplex, Connection>();

  /** Follows the connections of a server. */
  watch(server: Server): void {
    server.on('connection', (socket: Duplex) => {
      this.#open.set(socket, { unanswered: 0, last: undefined, waiting: [] });
      socket.once('close', () => {
        this.#forget(socket);
      });
    });
    server.setTimeout(stalledMs, (socket) => {
      // Silence is the client's only while bytes wait for it, or nothing is asked.
      const isOurs = this.lastAnswer(socket) !== undefined && socket.writableLength === 0;
      if (isOurs) socket.setTimeout(stalledMs);
      else socket.destroy();
    });
  }

  /**
   * Whether it is the turn of a request to be answered, that is, all before it on its connection
   * are; a promise of it while it is not. False for one that will never be answered. A client that
   * has asked for too much ahead loses its connection.
   */
  turn(message: IncomingMessage, response: ServerResponse): boolean | Promise<boolean> {
    const { socket } = message;
    const connection = this.#open.get(socket);
    if (connection === undefined || socket.destroyed) return false;
    connection.unanswered += 1;
    connection.last = response;
    if (connection.unanswered > pipelinedRequestsMax) {
      socket.destroy();
      return false;
    }
    response.once('close', () => {
      connection.unanswered -= 1;
      if (connection.last === response) connection.last = undefined;
      connection.waiting.shift()?.(!socket.destroyed);
    });
    if (connection.unanswered === 1) return true;
    return new Promise((resolve) => connection.waiting.push(resolve));
  }

  /** The answer that is the last one owed on a connection; undefined where none is. */
  lastAnswer(socket: Duplex): ServerResponse | undefined {
    return this.#open.get(socket)?.last;
  }

  /** Cuts off every connection that is still open. */
  destroyAll(): void {
    for (const socket of this.#open.keys()) socket.destroy();
  }

  #forget(socket: Duplex): void {
    const connection = this.#open.get(socket);
    this.#open.delete(socket);
    for (const resolve of connection?.waiting ?? []) resolve(false);
  }
}

/**
 * Sends the last bytes of a connection and ends it for good, whether the client ends its side or
 * not; it gets a moment to read them, for a reset would take them away (RFC 9112 §9.6).
 */
export function sayLast(socket: Duplex, text: string): void {
  socket.resume();
  socket.end(text, () => {
    setTimeout(() => socket.destroy(), lingerMs).unref();
  });
}
