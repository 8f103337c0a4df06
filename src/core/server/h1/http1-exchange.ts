import type { Socket } from 'node:net';
import { failBody } from '../../http/content/content.ts';
import type { ReadHead } from '../../http/reading/head.ts';
import { type FieldList, type Reply, discard, replyField } from '../../http/reply.ts';
import type { TurnWriteBatcher } from '../../outbound/h1/turn-write-batcher.ts';
import { canDiscardBody } from '../../pipeline/body.ts';
import { ClientGone } from '../../pipeline/client-gone.ts';
import type { PreparableExchange, Prepared, Sent } from '../../pipeline/exchange.ts';
import { headEnd, headText, interimText, lengthLine } from '../../pipeline/response-head.ts';
import type { Cancellation, Failure } from '../../values/failure.ts';
import type { Peer } from '../../values/network/peer.ts';
import { preparedTextBytesMax } from '../limits.ts';
import { sendContent } from '../send-content.ts';
import { AnswerContent } from './answer-content.ts';
import type { ConnectionBody } from './connection-body.ts';
import { goesInPieces, writeInPieces } from './pieces.ts';
import { linger, resetIfUnframed } from './refusal.ts';

/** What an exchange needs of its connection. */
export interface ExchangeParts {
  readonly socket: Socket;
  readonly peer: Peer;
  readonly batcher: TurnWriteBatcher;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Closes the connection as soon as the system has taken all written bytes. */
  readonly closeWhenWritten: () => void;
}

/** A request on a connection of HTTP/1.1, and its answer. */
export class Http1Exchange implements PreparableExchange {
  readonly head: ReadHead;
  readonly peer: Peer;
  readonly socket: Socket;
  readonly body: ConnectionBody | undefined;
  failure: Failure | undefined;
  shouldKeepAlive: boolean;
  hasBegun = false;
  isSent = false;
  readonly #parts: ExchangeParts;
  /** Whether the client waits for a 100 before it sends the content. */
  #awaitsContinue = false;
  #isGone = false;
  #listeners: (() => void)[] | undefined;
  /** Called if the client goes on sending content that nobody reads; undefined without any. */
  #tooMuch: (() => void) | undefined;

  constructor(parts: ExchangeParts, head: ReadHead, body: ConnectionBody | undefined) {
    this.head = head;
    this.peer = parts.peer;
    this.socket = parts.socket;
    this.body = body;
    this.shouldKeepAlive = head.shouldKeepAlive;
    this.#parts = parts;
    if (head.version === '1.0' || head.expect === undefined) return;
    this.#awaitsContinue = true;
    body?.once('resume', this.#continue);
  }

  get hasArrived(): boolean {
    return this.body?.complete ?? true;
  }

  get signal(): Cancellation {
    return new ClientGone(this, this.socket);
  }

  get isOver(): boolean {
    return this.isSent || this.#isGone || this.socket.destroyed;
  }

  onClose(listener: () => void): void {
    (this.#listeners ??= []).push(listener);
  }

  destroy(): void {
    if (!this.isSent) this.socket.destroy();
  }

  /** To be called when the connection has closed. */
  closed(): void {
    this.body?.connectionClosed();
    if (this.isSent || this.#isGone) return;
    this.#isGone = true;
    this.#callListeners();
  }

  /** Asks for the content when somebody reads it, and not earlier (RFC 9110 §10.1.1). */
  readonly #continue = (): void => {
    if (this.hasBegun || this.isOver) return;
    this.interim(100, []);
    this.#awaitsContinue = false;
  };

  /**
   * Fails the content of the request, for its present or future reader; returns whether there is
   * one now.
   */
  breakOff(failure: Failure): boolean {
    this.failure = failure;
    return this.body !== undefined && failBody(this.body, failure);
  }

  leaveUnread(tooMuch: () => void): void {
    const { body, head } = this;
    if (body === undefined || body.readableEnded || canDiscardBody(head)) return;
    this.shouldKeepAlive = false;
    this.#tooMuch = tooMuch;
  }

  interim(status: number, fields: FieldList): void {
    // HTTP/1.0 has no interim responses.
    if (this.hasBegun || this.isOver || this.head.version === '1.0') return;
    this.socket.write(interimText(status, fields), 'latin1');
  }

  respond(reply: Reply, address = this.peer.address): Sent | Promise<Sent> {
    if (this.isOver) return cutOff(reply);
    const { body, status } = reply;
    const head = this.#headOf(reply);
    // These have no content (RFC 9110 §15.3.5, §15.4.5): it would be the next answer.
    if (status === 204 || status === 304) {
      void discard(reply);
      return this.#write(head, undefined);
    }
    switch (body.kind) {
      case 'none':
        return this.#write(head, undefined);
      case 'bytes':
        return this.#write(head, body.bytes);
      case 'file':
      case 'stream': {
        const content = this.#content(reply, head);
        return sendContent(content, content, body, address);
      }
    }
  }

  respondPrepared({ head, isDated, content }: Prepared, nowMs: number): void {
    void this.#write(head + this.#headEnd(isDated ? undefined : nowMs), content);
  }

  /** Status line and fields of an answer, up to its content. */
  #headOf(reply: Reply): string {
    const { version, method } = this.head;
    const { body } = reply;
    let text = headText(reply);
    if (body.kind === 'none' || body.kind === 'bytes') text += lengthLine(reply, method);
    else if (replyField(reply, 'content-length') === undefined) {
      // Without chunks, the content ends with the connection (RFC 9112 §6.3).
      if (version === '1.0') this.shouldKeepAlive = false;
      else text += 'Transfer-Encoding: chunked\r\n';
    }
    const isDated = replyField(reply, 'date') !== undefined;
    return text + this.#headEnd(isDated ? undefined : this.#parts.now());
  }

  #headEnd(dateMs: number | undefined): string {
    // Without the 100, it sends the content or not: where the next request begins is uncertain.
    if (this.#awaitsContinue) this.shouldKeepAlive = false;
    return headEnd(dateMs, this.shouldKeepAlive);
  }

  /** Writes an answer whose content is in memory. */
  #write(head: string, content: Buffer | string | undefined): Sent | Promise<Sent> {
    const { socket, batcher } = this.#parts;
    this.hasBegun = true;
    const bytes = content?.length ?? 0;
    if (typeof content !== 'object' || bytes <= preparedTextBytesMax) {
      // A text with one character for each byte goes out with the head in one piece.
      const text = content === undefined ? head : head + content.toString('latin1');
      if (this.shouldKeepAlive) batcher.write(socket, text);
      else socket.write(text, 'latin1');
      this.#finish(true);
      return { bytes, cut: false };
    }
    if (goesInPieces(socket, content)) return this.#writePieces(head, content);
    socket.cork();
    socket.write(head, 'latin1');
    // The content occupies memory until the system has taken it.
    socket.write(content, (error) => {
      this.#finish(!error);
    });
    socket.uncork();
    return { bytes, cut: false };
  }

  async #writePieces(head: string, content: Buffer): Promise<Sent> {
    const { socket } = this.#parts;
    socket.write(head, 'latin1');
    const bytes = await writeInPieces(socket, content);
    const isWhole = bytes === content.length;
    this.#finish(isWhole);
    return { bytes, cut: !isWhole };
  }

  /** The content of an answer that is written piece by piece, at the pace of the client. */
  #content(reply: Reply, head: string): AnswerContent {
    const length = replyField(reply, 'content-length');
    const isUnframed = this.head.version === '1.0' && length === undefined;
    return new AnswerContent(this.socket, {
      head,
      length: isUnframed ? Infinity : length === undefined ? undefined : Number(length),
      begun: () => {
        this.hasBegun = true;
      },
      ended: () => {
        this.#finish(true);
      },
      failed: () => {
        resetIfUnframed(this);
      },
      cut: () => {
        this.destroy();
      },
    });
  }

  /** The connection has the whole answer, or has lost it. */
  #finish(isTaken: boolean): void {
    if (this.isSent || this.#isGone) return;
    if (!isTaken) {
      this.socket.destroy();
      return;
    }
    this.isSent = true;
    if (this.shouldKeepAlive) {
      if (this.body?.complete === false) this.body.discardContent();
    } else if (this.#tooMuch === undefined) this.#parts.closeWhenWritten();
    else {
      this.body?.discardContent();
      linger(this.socket, this.#tooMuch);
    }
    this.#callListeners();
  }

  #callListeners(): void {
    const listeners = this.#listeners;
    this.#listeners = undefined;
    if (listeners !== undefined) for (const listener of listeners) listener();
  }
}

/** Discards a reply whose connection has closed. */
async function cutOff(reply: Reply): Promise<Sent> {
  await discard(reply);
  return { bytes: 0, cut: true };
}
