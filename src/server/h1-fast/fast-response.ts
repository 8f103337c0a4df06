import type { ServerResponse } from 'node:http';
import { discard, replyField, type FieldList, type Reply } from '../../http/reply.ts';
import type { Corks } from '../../outbound/fast/corks.ts';
import type { Connection } from '../h1/connection.ts';
import { sendInterim } from '../h1/node-http.ts';
import { goesInPieces } from '../h1/pieces.ts';
import type { Prepared, SendingResponse, Sent } from '../http-message.ts';
import { preparedTextBytesMax } from '../limits.ts';
import { headEnd, headText } from '../response-head.ts';
import { send, sendPrepared } from '../send.ts';

/** The parts that all fast responses share. */
export interface FastResponseParts {
  readonly corks: Corks;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/**
 * A response that goes out in one piece, without Node's HTTP server, which has not seen the
 * request. In any other case (a stream, an interim response, more bytes of the client meanwhile)
 * Node's server gets the bytes of the request, and its response replaces this one.
 */
export class FastResponse implements SendingResponse {
  shouldKeepAlive: boolean;
  readonly #connection: Connection;
  /** The whole request. */
  readonly #request: Buffer;
  readonly #parts: FastResponseParts;
  #closeListeners: (() => void)[] = [];
  #node: ServerResponse | undefined;
  #isSent = false;
  #isGone = false;

  constructor(
    parts: FastResponseParts,
    connection: Connection,
    { bytes, shouldKeepAlive }: { readonly bytes: Buffer; readonly shouldKeepAlive: boolean },
  ) {
    this.#parts = parts;
    this.#connection = connection;
    this.#request = bytes;
    this.shouldKeepAlive = shouldKeepAlive;
  }

  get destroyed(): boolean {
    if (this.#node !== undefined) return this.#node.destroyed;
    return this.#isSent || this.#isGone || this.#connection.socket.destroyed;
  }

  get writableFinished(): boolean {
    return this.#node?.writableFinished ?? this.#isSent;
  }

  get headersSent(): boolean {
    return this.#node?.headersSent ?? this.#isSent;
  }

  once(_: 'close', listener: () => void): void {
    if (this.#node === undefined) this.#closeListeners.push(listener);
    else this.#node.once('close', listener);
  }

  destroy(): void {
    if (this.#node !== undefined) this.#node.destroy();
    else if (!this.#isSent) this.#connection.socket.destroy();
  }

  /** Continues as a response of Node's and returns it; undefined if the connection has closed. */
  handOver(): ServerResponse | undefined {
    if (this.#node !== undefined || this.#isSent || this.#isGone) return this.#node;
    const { socket } = this.#connection;
    const node = socket.destroyed ? undefined : this.#connection.parseAgain(this.#request);
    if (node === undefined) {
      socket.destroy();
      return undefined;
    }
    this.#node = node;
    if (!this.shouldKeepAlive) node.shouldKeepAlive = false;
    for (const listener of this.#closeListeners) node.once('close', listener);
    return node;
  }

  /** To be called when the client has closed its side: this is the last response. */
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

  sendReply(reply: Reply): Sent | Promise<Sent> {
    if (this.destroyed) return cutOff(reply);
    if (this.#node === undefined) {
      const sent = this.#write(reply);
      if (sent !== undefined) return sent;
    }
    const node = this.handOver();
    if (node === undefined) return cutOff(reply);
    if (!this.shouldKeepAlive) node.shouldKeepAlive = false;
    return send(node, reply);
  }

  sendPrepared(prepared: Prepared, nowMs: number): void {
    const { head, isDated, content } = prepared;
    const { socket } = this.#connection;
    const isLong = typeof content === 'object';
    if (head === undefined || (isLong && goesInPieces(socket, content))) {
      const node = this.handOver();
      if (node !== undefined) sendPrepared(node, prepared, nowMs);
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

  sendInterim(status: number, fields: FieldList): void {
    if (this.headersSent || this.destroyed) return;
    const response = this.handOver();
    if (response !== undefined) sendInterim(response, status, fields);
  }

  /** Writes a reply if it goes out in one piece. */
  #write(reply: Reply): Sent | undefined {
    const content = contentText(reply);
    if (content === undefined) return undefined;
    const head = headText(reply);
    if (head === undefined) return undefined;
    const { corks, now } = this.#parts;
    const date = replyField(reply, 'date') === undefined ? now() : undefined;
    const text = head + headEnd(date, this.shouldKeepAlive) + content;
    this.#isSent = true;
    if (this.shouldKeepAlive) {
      corks.write(this.#connection.socket, text);
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
