import { TurnWriteBatcher } from '../../outbound/h1/turn-write-batcher.ts';
import { KIB } from '../../values/units.ts';
import type { Connection, TryAnswer } from '../h1/connection.ts';
import { FastExchange, type FastParts } from './fast-exchange.ts';
import { readSimpleHead } from './simple-head.ts';

/** The longest head of a request that the fast path answers. */
const fastHeadBytesMax = 8 * KIB;

/** Answers a request that the fast path has read. */
type Handle = (exchange: FastExchange) => void;

/**
 * Makes the fast path of a server: it answers a GET or HEAD without Node's HTTP server if the head
 * arrives whole, alone, and in the most ordinary form. `handle` makes the answer, as for all
 * requests. Without the fast path, Node's server gives the same answers.
 */
export function createTryAnswer(handle: Handle, now: () => number): TryAnswer {
  const path = new FastPath(handle, { batcher: new TurnWriteBatcher(), now });
  return (connection, bytes) => path.tryAnswer(connection, bytes);
}

class FastPath {
  readonly #handle: Handle;
  readonly #parts: FastParts;
  /** The requests that are not answered yet. */
  readonly #pending = new Map<Connection, FastExchange>();
  readonly #watched = new WeakSet<Connection>();

  constructor(handle: Handle, parts: FastParts) {
    this.#handle = handle;
    this.#parts = parts;
  }

  tryAnswer(connection: Connection, bytes: Buffer): boolean {
    if (!connection.isFree) {
      // Node's parser has to read the pending request before these bytes.
      this.#pending.get(connection)?.handOver();
      return false;
    }
    if (bytes.length > fastHeadBytesMax) return false;
    const head = readSimpleHead(bytes.toString('latin1'));
    if (head === undefined) return false;
    const exchange = new FastExchange(this.#parts, connection, { bytes, head });
    this.#handle(exchange);
    if (!exchange.hasBegun) this.#follow(connection, exchange);
    return true;
  }

  #follow(connection: Connection, exchange: FastExchange): void {
    this.#pending.set(connection, exchange);
    exchange.onClose(() => {
      if (this.#pending.get(connection) === exchange) this.#pending.delete(connection);
    });
    if (this.#watched.has(connection)) return;
    this.#watched.add(connection);
    const { socket } = connection;
    // Ahead of Node's server, which closes the other side of the connection at the end.
    socket.prependOnceListener('end', () => {
      this.#pending.get(connection)?.endedByClient();
    });
    socket.once('close', () => {
      this.#pending.get(connection)?.close();
    });
  }
}
