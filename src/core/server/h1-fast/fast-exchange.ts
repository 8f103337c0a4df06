import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { headerFieldsMax } from '../../http/limits.ts';
import { type FieldList, type Reply, discard, replyField } from '../../http/reply.ts';
import { tokenSource, trimOws } from '../../http/syntax.ts';
import { TurnWriteBatcher } from '../../outbound/h1/turn-write-batcher.ts';
import { ClientGone } from '../../pipeline/client-gone.ts';
import type { MessageHead, Prepared, Sent } from '../../pipeline/exchange.ts';
import { headEnd, headText } from '../../pipeline/response-head.ts';
import type { Cancellation } from '../../values/failure.ts';
import type { Peer } from '../../values/network/peer.ts';
import { KIB } from '../../values/units.ts';
import type { Connection, Http1Exchange, TryAnswer } from '../h1/connection.ts';
import { goesInPieces } from '../h1/pieces.ts';
import { preparedTextBytesMax } from '../limits.ts';

const requestLine = /^(GET|HEAD) (\/[\w/?.~!$&'()*+,;=:@%[\]-]*) HTTP\/1\.1\r\n/;
const fieldLine = new RegExp(`(${tokenSource}):([\\t\\x20-\\x7e\\x80-\\xff]*)\\r\\n`, 'y');

/** Fields about framing, or about one connection only (RFC 9112 §6, RFC 9110 §7.6, §10.1). */
const notPlain: ReadonlySet<string> = new Set([
  'content-length',
  'expect',
  'http2-settings',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);
const longestNotPlain = 'transfer-encoding'.length;

/** The longest head of a request that the fast path answers. */
const fastHeadBytesMax = 8 * KIB;

/** The parts that all exchanges of the fast path share. */
interface FastParts {
  readonly batcher: TurnWriteBatcher;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/**
 * A request without content whose answer goes out in one piece, without Node's HTTP server, which
 * has not seen the request. In any other case (a stream, an interim response, more bytes of the
 * client meanwhile) Node's server gets the bytes of the request, and its answer replaces this one.
 */
export class FastExchange implements Http1Exchange {
  readonly head: PlainHead;
  readonly peer: Peer;
  readonly socket: Socket;
  readonly body = undefined;
  readonly failure = undefined;
  readonly hasArrived = true;
  shouldKeepAlive: boolean;
  readonly #connection: Connection;
  /** The whole request. */
  readonly #request: Buffer;
  readonly #parts: FastParts;
  #closeListeners: (() => void)[] = [];
  #node: Http1Exchange | undefined;
  #isSent = false;
  #isGone = false;

  constructor(
    parts: FastParts,
    connection: Connection,
    { bytes, head }: { readonly bytes: Buffer; readonly head: PlainHead },
  ) {
    this.head = head;
    this.peer = connection.peer;
    this.socket = connection.socket;
    this.#parts = parts;
    this.#connection = connection;
    this.#request = bytes;
    this.shouldKeepAlive = head.shouldKeepAlive;
  }

  get response(): ServerResponse | undefined {
    return this.#node?.response;
  }

  get signal(): Cancellation {
    return new ClientGone(this, this.socket);
  }

  get isOver(): boolean {
    if (this.#node !== undefined) return this.#node.isOver;
    return this.#isSent || this.#isGone || this.#connection.socket.destroyed;
  }

  get isSent(): boolean {
    return this.#node?.isSent ?? this.#isSent;
  }

  get hasBegun(): boolean {
    return this.#node?.hasBegun ?? this.#isSent;
  }

  onClose(listener: () => void): void {
    if (this.#node === undefined) this.#closeListeners.push(listener);
    else this.#node.onClose(listener);
  }

  destroy(): void {
    if (this.#node !== undefined) this.#node.destroy();
    else if (!this.#isSent) this.#connection.socket.destroy();
  }

  /** There is no content that could fail. */
  breakOff(): boolean {
    return false;
  }

  /** There is no content that could stay unread. */
  leaveUnread(): void {
    return undefined;
  }

  /** Continues by Node's HTTP server; returns undefined if the connection has closed. */
  handOver(): Http1Exchange | undefined {
    if (this.#node !== undefined || this.#isSent || this.#isGone) return this.#node;
    const { socket } = this.#connection;
    const node = socket.destroyed ? undefined : this.#connection.handToNodeParser(this.#request);
    if (node === undefined) {
      socket.destroy();
      return undefined;
    }
    this.#node = node;
    if (!this.shouldKeepAlive) node.shouldKeepAlive = false;
    for (const listener of this.#closeListeners) node.onClose(listener);
    return node;
  }

  /** To be called when the client has closed its side: this is the last answer. */
  endedByClient(): void {
    this.shouldKeepAlive = false;
    // Otherwise Node's server, which knows no request, would close the connection.
    if (this.#connection.isParsed) this.handOver();
  }

  /** To be called when the connection has closed. */
  close(): void {
    if (this.#node !== undefined || this.#isSent) return;
    this.#isGone = true;
    this.#callCloseListeners();
  }

  respond(reply: Reply, address = this.peer.address): Sent | Promise<Sent> {
    if (this.isOver) return cutOff(reply);
    if (this.#node === undefined) {
      const sent = this.#write(reply);
      if (sent !== undefined) return sent;
    }
    const node = this.handOver();
    if (node === undefined) return cutOff(reply);
    if (!this.shouldKeepAlive) node.shouldKeepAlive = false;
    return node.respond(reply, address);
  }

  respondPrepared(prepared: Prepared, nowMs: number): void {
    const { head, isDated, content } = prepared;
    const { socket } = this.#connection;
    const isLong = typeof content === 'object';
    if (head === undefined || (isLong && goesInPieces(socket, content))) {
      this.handOver()?.respondPrepared(prepared, nowMs);
      return;
    }
    const start = head + headEnd(isDated ? undefined : nowMs, this.shouldKeepAlive);
    this.#isSent = true;
    if (isLong) {
      socket.cork();
      socket.write(start, 'latin1');
      // The content occupies memory until the system has taken it.
      socket.write(content, () => {
        this.#callCloseListeners();
      });
      socket.uncork();
    } else {
      socket.write(start + (content ?? ''), 'latin1');
      this.#callCloseListeners();
    }
    if (!this.shouldKeepAlive) this.#connection.closeWhenWritten();
  }

  interim(status: number, fields: FieldList): void {
    if (!this.hasBegun && !this.isOver) this.handOver()?.interim(status, fields);
  }

  /** Writes a reply if it goes out in one piece. */
  #write(reply: Reply): Sent | undefined {
    const content = contentText(reply);
    if (content === undefined) return undefined;
    const head = headText(reply);
    if (head === undefined) return undefined;
    const { batcher, now } = this.#parts;
    const date = replyField(reply, 'date') === undefined ? now() : undefined;
    const text = head + headEnd(date, this.shouldKeepAlive) + content;
    this.#isSent = true;
    if (this.shouldKeepAlive) {
      batcher.write(this.#connection.socket, text);
    } else {
      this.#connection.socket.write(text, 'latin1');
      this.#connection.closeWhenWritten();
    }
    this.#callCloseListeners();
    return { bytes: content.length, cut: false };
  }

  #callCloseListeners(): void {
    for (const listener of this.#closeListeners) listener();
    this.#closeListeners = [];
  }
}

/** Discards a reply whose connection has closed. */
async function cutOff(reply: Reply): Promise<Sent> {
  await discard(reply);
  return { bytes: 0, cut: true };
}

/** Returns content as text, one character for each byte; undefined if it is long or a stream. */
function contentText({ body }: Reply): string | undefined {
  if (body.kind === 'none') return '';
  if (body.kind !== 'bytes' || body.bytes.length > preparedTextBytesMax) return undefined;
  return body.bytes.toString('latin1');
}

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

/** The head of a GET or HEAD without fields about framing or the connection, except Connection. */
export interface PlainHead extends MessageHead {
  readonly method: 'GET' | 'HEAD';
  readonly version: '1.1';
  /** False if the client says `Connection: close` (RFC 9112 §9.6). */
  readonly shouldKeepAlive: boolean;
}

/**
 * Reads a latin1 text that is exactly the head of a GET or HEAD in HTTP/1.1, in the most ordinary
 * form of RFC 9112 §3 and §5. Undefined for any other text, malformed or only unusual: Node's
 * parser reads it.
 */
export function readSimpleHead(text: string): PlainHead | undefined {
  const line = requestLine.exec(text);
  if (line === null || !text.endsWith('\r\n\r\n')) return undefined;
  const [{ length }, method, url = ''] = line;
  const fields: string[] = [];
  const end = text.length - 2;
  let shouldKeepAlive = true;
  let at = length;
  while (at < end) {
    fieldLine.lastIndex = at;
    const field = fieldLine.exec(text);
    if (field === null) return undefined;
    const name = field[1] ?? '';
    const value = trimOws(field[2] ?? '');
    if (name.length <= longestNotPlain) {
      const lower = name.toLowerCase();
      if (notPlain.has(lower)) return undefined;
      if (lower === 'connection') {
        const option = value.toLowerCase();
        if (option === 'close') shouldKeepAlive = false;
        else if (option !== 'keep-alive') return undefined;
      }
    }
    fields.push(name, value);
    at = fieldLine.lastIndex;
  }
  if (fields.length > 2 * headerFieldsMax) return undefined;
  const known = method === 'HEAD' ? 'HEAD' : 'GET';
  return { method: known, url, version: '1.1', fields, shouldKeepAlive };
}
