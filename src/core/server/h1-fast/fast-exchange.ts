import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { discard, replyField, type FieldList, type Reply } from '../../http/reply.ts';
import type { TurnWriteBatcher } from '../../outbound/h1/turn-write-batcher.ts';
import type { Cancellation } from '../../values/cancellation.ts';
import type { Peer } from '../../values/network/peer.ts';
import type { Prepared, Sent } from '../../pipeline/exchange.ts';
import { ClientGone } from '../../pipeline/client-gone.ts';
import type { Connection, Http1Exchange } from '../h1/connection.ts';
import { goesInPieces } from '../h1/pieces.ts';
import { preparedTextBytesMax } from '../limits.ts';
import { headEnd, headText } from '../../pipeline/response-head.ts';
import type { PlainHead } from './simple-head.ts';

/** The parts that all exchanges of the fast path share. */
export interface FastParts {
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

  respond(reply: Reply): Sent | Promise<Sent> {
    if (this.isOver) return cutOff(reply);
    if (this.#node === undefined) {
      const sent = this.#write(reply);
      if (sent !== undefined) return sent;
    }
    const node = this.handOver();
    if (node === undefined) return cutOff(reply);
    if (!this.shouldKeepAlive) node.shouldKeepAlive = false;
    return node.respond(reply);
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
