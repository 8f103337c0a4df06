import type { Duplex } from 'node:stream';
import type { Reply } from '../../http/reply.ts';
import { ClientGone } from '../../pipeline/client-gone.ts';
import type { Sent, Exchange, UpgradeRequest } from '../../pipeline/exchange.ts';
import type { Cancellation } from '../../values/failure.ts';
import { sendContent } from '../send-content.ts';
import { linger, writeAndClose, writeLastHead } from './refusal.ts';

const nothing = (): void => undefined;

/** A request for another protocol; an answer in HTTP is the last one of its connection. */
export class UpgradeExchange implements Exchange {
  readonly head: Exchange['head'];
  readonly peer: Exchange['peer'];
  readonly body: Exchange['body'];
  readonly failure = undefined;
  shouldKeepAlive = false;
  hasBegun = false;
  isSent = false;
  readonly #socket: Duplex;
  readonly #now: () => number;

  /** `now` gives milliseconds since 1970. */
  constructor({ head, peer, body, socket }: UpgradeRequest, now: () => number) {
    this.head = head;
    this.peer = peer;
    this.body = body;
    this.#socket = socket;
    this.#now = now;
  }

  get hasArrived(): boolean {
    return this.body === undefined || this.body.complete;
  }

  get signal(): Cancellation {
    return new ClientGone(this, undefined);
  }

  get isOver(): boolean {
    return this.isSent || !this.#socket.writable;
  }

  onClose(listener: () => void): void {
    this.#socket.once('close', listener);
  }

  /** The head of an answer ends the connection, so none goes before it. */
  interim(): void {
    nothing();
  }

  async respond(reply: Reply, address = this.peer.address): Promise<Sent> {
    const socket = this.#socket;
    this.hasBegun = true;
    // The head was sent as the protocol opened.
    if (reply.status === 101) return { bytes: 0, cut: false };
    const { body } = reply;
    if (body.kind === 'none' || body.kind === 'bytes') {
      const bytes = writeAndClose(socket, reply, this.#now());
      this.isSent = true;
      return { bytes, cut: false };
    }
    writeLastHead(socket, reply, this.#now());
    const ways = { sendHead: nothing, trailWith: nothing, failed: nothing };
    const sent = await sendContent(socket, ways, body, address);
    this.isSent = !sent.cut;
    linger(socket);
    return sent;
  }

  /** Content that nobody reads is read to nowhere while the connection ends. */
  leaveUnread(): void {
    this.body?.resume();
  }

  destroy(): void {
    this.#socket.destroy();
  }
}
