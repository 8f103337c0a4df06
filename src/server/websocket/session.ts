import type { Duplex } from 'node:stream';
import type { RawData, WebSocket } from 'ws';
import { isStrictPreferred } from '../../http/prefer.ts';
import { discard, type Reply } from '../../http/reply.ts';
import type { Fields } from '../../http/request.ts';
import { Failure } from '../../model/failure.ts';
import { canWrite, type Caller } from '../../model/key.ts';
import { readBodyBytesMax, socketRequestsInFlightMax } from '../../api/limits.ts';
import { operationBodyBytesMax } from '../limits.ts';
import { socketBufferedBytesMax, socketPingsMax } from './limits.ts';
import type { ProxyClaims } from '../../visitors/visitor.ts';
import { failureMember, loggedFailure, type FailureLogs } from '../failures.ts';
import { jsonPieces } from '../../model/prepared-json.ts';
import { outcomeMembers } from '../operations.ts';
import { WebSocketMessage } from './message.ts';
import { contentPacket, type ContentPacket } from './packet.ts';
import type { Serving } from '../serving.ts';
import type { Allocation } from '../../model/shared-limit.ts';
import type { SharedLimits } from '../shared-limits.ts';
import { sendPieces } from './send-pieces.ts';
import { Subscriptions } from './subscriptions.ts';
import { UnfinishedMessage } from './unfinished.ts';

/** Who opened a websocket, and by which origin. */
export interface SocketOpening {
  readonly caller: Caller;
  readonly origin: string;
  readonly fields: Fields;
  readonly claims: ProxyClaims;
}

/** What websockets need of their surroundings. */
export interface SessionParts extends FailureLogs {
  readonly serving: () => Serving;
  readonly shared: SharedLimits;
}

const tooSlow = 'Answers are not being read fast enough.';
const authenticateName = 'svc1.session.authenticate';

/** One open websocket: envelopes are answered as they come, subscriptions as the log grows. */
export class WebSocketSession {
  readonly subscriptions: Subscriptions;
  readonly #websocket: WebSocket;
  readonly #connection: Duplex;
  readonly #opening: SocketOpening;
  readonly #parts: SessionParts;
  readonly #unfinished: UnfinishedMessage;
  readonly #abort = new AbortController();
  /** What has been received but not begun, in order. */
  readonly #waiting: Buffer[] = [];
  #caller: Caller;
  #inFlight = 0;
  #collected: Promise<unknown> = Promise.resolve();
  /** Whether a message authenticates the client: later messages wait for its result. */
  #identifying = false;
  #alive = true;
  /** Of the client, since our own. */
  #pings = 0;
  #idle: (() => void) | undefined;
  /** Whether the client has sent what it may not: nothing more is read of it. */
  #isRefused = false;

  constructor(
    websocket: WebSocket,
    connection: Duplex,
    opening: SocketOpening,
    parts: SessionParts,
  ) {
    this.#websocket = websocket;
    this.#connection = connection;
    this.#opening = opening;
    this.#caller = opening.caller;
    this.#parts = parts;
    this.subscriptions = new Subscriptions({
      websocket,
      serving: parts.serving,
      caller: () => this.#callerNow(),
      shared: parts.shared,
      hold: (pieces) => this.#hold(pieces),
      limits: parts.limits,
      tell: (...failed) => this.#tell(...failed),
    });
    this.#unfinished = new UnfinishedMessage({
      connection,
      bytesMax: () => this.#messageBytesMax(),
      allocation: () => this.#allocation(),
      isPaused: () => websocket.isPaused,
      refuse: (code, failure) => {
        this.#refuse(code, failure);
      },
    });
    websocket.on('message', (data, isBinary) => {
      this.#receive(data, isBinary);
    });
    websocket.on('pong', () => {
      this.#alive = true;
    });
    websocket.on('close', () => {
      this.#abort.abort();
      this.subscriptions.stop();
      this.#unfinished.stop();
      this.#idle?.();
    });
    // ws closes the connection itself after an error of the protocol, with the code that says
    // which.
    websocket.on('error', (error) => {
      parts.log.debug({ err: error }, 'websocket error');
      parts.limits.passed('websocket_frames', this.#caller.address, error.message);
    });
    websocket.on('ping', (payload) => {
      this.#pong(payload);
    });
  }

  /**
   * Asks whether the client is still there, and ends the connection when it did not answer the last
   * time.
   */
  ping(): void {
    // While nothing is read of a client, its pongs are not either.
    if (this.#websocket.isPaused) return;
    if (!this.#alive) {
      // A ping comes after what was sent before it.
      if (this.subscriptions.isHeldUp) this.#closeUnread();
      else this.#websocket.terminate();
      return;
    }
    this.#alive = false;
    this.#pings = 0;
    this.#websocket.ping();
  }

  /**
   * Answers what is in flight, then says goodbye; resolves to whether something had to be cut off.
   */
  async end(graceMs: number): Promise<boolean> {
    this.#websocket.pause();
    const timer = new Promise<boolean>((resolve) => {
      setTimeout(() => {
        resolve(true);
      }, graceMs).unref();
    });
    const closed = new Promise<boolean>((resolve) => {
      this.#websocket.once('close', () => {
        resolve(false);
      });
    });
    const idle = new Promise<boolean>((resolve) => {
      this.#idle = () => {
        resolve(false);
      };
      if (this.#inFlight === 0) this.#idle();
    });
    const cut = await Promise.race([idle, timer]);
    this.subscriptions.stop();
    this.#websocket.resume();
    this.#websocket.close(1001, 'The server is stopping.');
    const late = await Promise.race([closed, timer]);
    if (late) this.#websocket.terminate();
    return cut;
  }

  #receive(data: RawData, isBinary: boolean): void {
    if (isBinary) {
      this.#websocket.close(1003, 'Envelopes are text frames.');
      return;
    }
    this.#parts.serving().refresh();
    this.#waiting.push(data as Buffer);
    this.#begin();
  }

  /** Begins what waits, in order, as far as it may be begun yet. */
  #begin(): void {
    const open = this.#isOpen();
    // Nothing is begun after a goodbye: there would be no answer to tell of it.
    if (!open) this.#waiting.length = 0;
    while (this.#inFlight < socketRequestsInFlightMax && !this.#identifying) {
      const bytes = this.#waiting.shift();
      if (bytes === undefined) break;
      this.#inFlight += 1;
      void this.#answer(bytes).finally(() => {
        this.#inFlight -= 1;
        this.#begin();
        if (this.#inFlight === 0) this.#idle?.();
      });
    }
    // What has been read already may be many requests; for those after them the client's own socket
    // buffer is the queue.
    const full = this.#waiting.length > 0 || this.#inFlight >= socketRequestsInFlightMax;
    if (open && full) this.#websocket.pause();
    else if (this.#idle === undefined) this.#websocket.resume();
    this.#unfinished.check();
  }

  /** How much the client may send at once by now; Infinity while that is not known. */
  #messageBytesMax(): number {
    if (this.#isRefused || this.#identifying || this.#waiting.length > 0) return Infinity;
    return canWrite(this.#callerNow()) ? operationBodyBytesMax : readBodyBytesMax;
  }

  /** Of the bytes of requests that the process holds, those of one message of this client. */
  #allocation(): Allocation {
    return this.#parts.shared.requests.allocation(this.#caller);
  }

  /** Ends the websocket of a client that sends what it may not. */
  #refuse(code: number, { limit, message }: Failure): void {
    if (this.#isRefused || !this.#isOpen()) return;
    this.#isRefused = true;
    if (limit !== undefined) this.#parts.limits.passed(limit, this.#caller.address, message);
    this.#websocket.close(code, message);
    // Further messages would be held until its close frame, and are not read any more.
    this.#connection.removeAllListeners('data').resume();
    this.#connection.end();
  }

  async #answer(bytes: Buffer): Promise<void> {
    const message = new WebSocketMessage(bytes);
    const { operation } = message;
    this.#identifying = operation === authenticateName;
    const held = this.#allocation();
    let echo: { readonly id?: unknown } = {};
    try {
      echo = message.echo();
      held.grow(bytes.length);
      const members = await this.#run(message, echo);
      this.#send({ r: operation, ...members, ...echo });
    } catch (thrown) {
      this.#tell(operation, thrown, echo);
    } finally {
      held.free();
      if (operation === authenticateName) this.#identifying = false;
    }
  }

  async #run(message: WebSocketMessage, echo: { readonly id?: unknown }): Promise<object> {
    const { execute, requireUnrevoked, visitors } = this.#parts.serving();
    const caller = this.#callerNow();
    // A caller with another key may say so.
    if (message.operation !== authenticateName) requireUnrevoked(caller);
    const { a, v, vk, qk, prefer } = message.parse(execute, caller);
    if (a === '') throw new Failure('invalid', 'a must name an operation.', { field: 'a' });
    const call = {
      caller,
      vk,
      qk,
      origin: this.#opening.origin,
      fields: this.#opening.fields,
      visitor: visitors.visitorOf({ ...this.#opening, address: caller.address }),
      transport: 'websocket' as const,
      isStrict: isStrictPreferred(prefer),
      signal: () => this.#abort.signal,
    };
    const outcome = await execute.run(a, v, call);
    if (outcome.kind === 'reply') return { data: await this.#collect(outcome.reply) };
    if (outcome.kind === 'stream') {
      this.subscriptions.add({ name: a, stream: outcome.stream, call, echo });
      return { data: outcome.data };
    }
    if (outcome.caller !== undefined) this.#caller = outcome.caller;
    return outcomeMembers(outcome);
  }

  /** One after the other: of what a client has asked for at once, one content is in memory. */
  #collect(reply: Reply): Promise<ContentPacket> {
    const packet = this.#collected.then(async () => {
      if (this.#isOpen()) return contentPacket(reply);
      await discard(reply);
      throw new Failure('unavailable', 'The websocket was closed.');
    });
    this.#collected = packet.catch(() => undefined);
    return packet;
  }

  /** A caller without a key may do what such callers may do by now. */
  #callerNow(): Caller {
    const { keyId, address } = this.#caller;
    if (keyId !== undefined) return this.#caller;
    return this.#parts.serving().authenticate({ apikey: undefined, address });
  }

  #tell(operation: string, thrown: unknown, echo: object): Failure {
    const { failure, id } = loggedFailure(this.#parts, thrown, this.#caller.address);
    this.#send({ r: operation, error: failureMember(failure, id), ...echo });
    return failure;
  }

  #send(envelope: object): void {
    if (!this.#isOpen()) return;
    // What counts is what lies unread already: one answer alone may be larger than the limit.
    // Packets of subscriptions wait for the client by themselves.
    const unread = this.#websocket.bufferedAmount - this.subscriptions.unsentBytes;
    if (unread > socketBufferedBytesMax) {
      this.#closeUnread();
    } else {
      const pieces = jsonPieces(envelope);
      sendPieces(this.#websocket, pieces, this.#hold(pieces));
    }
  }

  /** Counts an answer as unread until the returned function is called; throws where too much is. */
  #hold(pieces: readonly Buffer[]): () => void {
    const encrypted = 'encrypted' in this.#connection;
    return this.#parts.shared.unread.hold(this.#caller, pieces, { encrypted });
  }

  /** Answers a ping, as long as there are not too many of them, and the answers are read. */
  #pong(payload: Buffer): void {
    this.#pings += 1;
    if (!this.#isOpen()) return;
    if (this.#pings > socketPingsMax) {
      this.#parts.limits.passed('websocket_pings', this.#caller.address);
      this.#websocket.close(1008, 'There are too many pings.');
    } else {
      this.#websocket.pong(payload);
    }
  }

  #closeUnread(): void {
    this.#parts.limits.passed('websocket_unread', this.#caller.address);
    this.#websocket.close(1013, tooSlow);
  }

  #isOpen(): boolean {
    return this.#websocket.readyState === this.#websocket.OPEN;
  }
}
