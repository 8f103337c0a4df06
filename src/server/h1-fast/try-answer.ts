import type { IncomingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import { Corks } from '../../outbound/fast/corks.ts';
import type { Connection, TryAnswer } from '../h1/connection.ts';
import type { RequestMessage, SendingResponse } from '../http-message.ts';
import { FastResponse, type FastResponseParts } from './fast-response.ts';
import { fastHeadBytesMax } from './limits.ts';
import { readPlainHead, type PlainHead } from './plain-head.ts';

/** Answers a request of any parser. */
type Handle = (request: RequestMessage, response: SendingResponse) => void;

/**
 * Makes the fast path of a server: it answers a GET or HEAD without Node's HTTP server if the head
 * arrives whole, alone, and in the most ordinary form. `handle` makes the answer, as for all
 * requests. Without the fast path, Node's server gives the same answers.
 */
export function createTryAnswer(handle: Handle, now: () => number): TryAnswer {
  const path = new FastPath(handle, { corks: new Corks(), now });
  return (connection, bytes) => path.tryAnswer(connection, bytes);
}

class FastPath {
  readonly #handle: Handle;
  readonly #parts: FastResponseParts;
  /** The responses that are not sent yet. */
  readonly #pending = new Map<Connection, FastResponse>();
  readonly #watched = new WeakSet<Connection>();

  constructor(handle: Handle, parts: FastResponseParts) {
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
    const head = readPlainHead(bytes.toString('latin1'));
    if (head === undefined) return false;
    const { shouldKeepAlive } = head;
    const response = new FastResponse(this.#parts, connection, { bytes, shouldKeepAlive });
    this.#handle(new FastRequest(head, connection.socket), response);
    if (!response.headersSent) this.#follow(connection, response);
    return true;
  }

  #follow(connection: Connection, response: FastResponse): void {
    this.#pending.set(connection, response);
    response.once('close', () => {
      if (this.#pending.get(connection) === response) this.#pending.delete(connection);
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

/** A request without content that Node's parser has not read. */
class FastRequest implements RequestMessage {
  readonly method: string;
  readonly url: string;
  readonly httpVersion = '1.1';
  readonly httpVersionMinor = 1;
  readonly rawHeaders: string[];
  readonly socket: Socket;
  readonly complete = true;

  constructor({ method, url, rawHeaders }: PlainHead, socket: Socket) {
    this.method = method;
    this.url = url;
    this.rawHeaders = rawHeaders;
    this.socket = socket;
  }

  get headers(): Pick<IncomingHttpHeaders, 'accept'> {
    const { rawHeaders } = this;
    const isAccept = (at: number): boolean => rawHeaders[at - 1]?.toLowerCase() === 'accept';
    const values = rawHeaders.filter((_, at) => at % 2 === 1 && isAccept(at));
    return { accept: values.length === 0 ? undefined : values.join(', ') };
  }
}
