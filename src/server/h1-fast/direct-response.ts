import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Writable } from 'node:stream';
import { discard, replyField, type FieldList, type Reply } from '../../http/reply.ts';
import { preparedTextBytesMax } from '../limits.ts';
import type { Corks } from '../../outbound/fast/corks.ts';
import { headEnd, headText } from './head-text.ts';
import { sendInterim } from '../h1/interim.ts';
import { goesInPieces } from '../h1/pieces.ts';
import type { Prepared } from '../prepared.ts';
import { send, type Sent } from '../send.ts';

/** The parts of a response that Node's and ours share. */
export interface Answering extends Pick<
  ServerResponse,
  'destroyed' | 'writableFinished' | 'headersSent'
> {
  shouldKeepAlive: boolean;
  once(event: 'close', listener: () => void): unknown;
  destroy(): unknown;
}

/** The connection that a direct response is written to. */
interface DirectParts {
  readonly socket: Socket;
  readonly corks: Corks;
  /** Lets Node's parser have the request after all; returns the answer that Node makes for it. */
  readonly handOver: () => ServerResponse | undefined;
  /** Told when the connection is free for the next request. */
  readonly done: () => void;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/**
 * An answer that goes out in one piece, without Node's HTTP server: it has not seen the request.
 * Whatever else becomes of it, be it a stream, what comes ahead of it, a client that ends its side
 * or asks for more meanwhile, or the end of the connection, is handed over to Node.
 */
export class DirectResponse implements Answering {
  shouldKeepAlive = true;
  readonly #parts: DirectParts;
  readonly #closed: (() => void)[] = [];
  #node: ServerResponse | undefined;
  #isSent = false;
  #isGone = false;

  constructor(parts: DirectParts) {
    this.#parts = parts;
  }

  get destroyed(): boolean {
    return this.#node?.destroyed ?? (this.#isSent || this.#isGone || this.#parts.socket.destroyed);
  }

  get writableFinished(): boolean {
    return this.#node?.writableFinished ?? this.#isSent;
  }

  get headersSent(): boolean {
    return this.#node?.headersSent ?? this.#isSent;
  }

  once(_: 'close', listener: () => void): void {
    if (this.#node === undefined) this.#closed.push(listener);
    else this.#node.once('close', listener);
  }

  destroy(): void {
    if (this.#node !== undefined) this.#node.destroy();
    else if (!this.#isSent) this.#parts.socket.destroy();
  }

  /** Sends an answer ahead of the one that counts, as Node does. */
  writeInformation(status: number, fields: FieldList): void {
    if (this.headersSent || this.destroyed) return;
    const response = this.handOver();
    if (response !== undefined) sendInterim(response, status, fields);
  }

  /** Continues as a response of Node's and returns it; undefined when the client has gone. */
  handOver(): ServerResponse | undefined {
    if (this.#node !== undefined || this.#isSent || this.#isGone) return this.#node;
    const node = this.#parts.handOver();
    if (node === undefined) {
      this.#parts.socket.destroy();
      return undefined;
    }
    this.#node = node;
    for (const listener of this.#closed) node.once('close', listener);
    return node;
  }

  /** The connection has ended. */
  close(): void {
    if (this.#node !== undefined || this.#isSent) return;
    this.#isGone = true;
    for (const listener of this.#closed) listener();
  }

  /** Sends the answer, as `send` does. */
  send(reply: Reply): Sent | Promise<Sent> {
    if (this.destroyed) return cutOff(reply);
    if (this.#node === undefined && this.shouldKeepAlive) {
      const sent = this.#write(reply);
      if (sent !== undefined) return sent;
    }
    const node = this.handOver();
    if (node === undefined) return cutOff(reply);
    if (!this.shouldKeepAlive) node.shouldKeepAlive = false;
    return send(node, reply);
  }

  /** Writes the answer if it goes out in one piece. */
  #write(reply: Reply): Sent | undefined {
    const content = contentText(reply);
    if (content === undefined) return undefined;
    const head = headText(reply);
    if (head === undefined) return undefined;
    const { socket, corks, now, done } = this.#parts;
    const date = replyField(reply, 'date') === undefined ? now() : undefined;
    corks.write(socket, head + headEnd(date) + content);
    this.#isSent = true;
    done();
    for (const listener of this.#closed) listener();
    return { bytes: content.length, cut: false };
  }
}

/** Discards a reply whose client has gone. */
async function cutOff(reply: Reply): Promise<Sent> {
  await discard(reply);
  return { bytes: 0, cut: true };
}

/** Content as text, one character for each byte; undefined where it takes more to send it. */
function contentText({ body }: Reply): string | undefined {
  if (body.kind === 'none') return '';
  if (body.kind !== 'bytes' || body.bytes.length > preparedTextBytesMax) return undefined;
  return body.bytes.toString('latin1');
}

/**
 * Writes a prepared answer as Node's server does, on a connection that goes on; false where it is
 * one that only Node can send. `nowMs` are milliseconds since 1970; `written` is called when the
 * system has taken content that does not go out with the head.
 */
export function writePrepared(
  socket: Writable,
  { head, isDated, content }: Prepared,
  nowMs: number,
  written?: () => void,
): boolean {
  if (head === undefined) return false;
  if (typeof content === 'object' && goesInPieces(socket, content)) return false;
  const start = head + headEnd(isDated ? undefined : nowMs);
  if (typeof content === 'object') {
    socket.cork();
    socket.write(start, 'latin1');
    socket.write(content, written);
    socket.uncork();
  } else {
    socket.write(start + (content ?? ''), 'latin1');
  }
  return true;
}
