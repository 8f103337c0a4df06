import type { Duplex } from 'node:stream';
import type { RawData, WebSocket } from 'ws';
import type { ProxyClaims } from '../../pipeline/incoming-request.ts';
import type { Allocation } from '../../fair/shared-limit.ts';
import type { SharedLimits } from '../../fair/shared-limits.ts';
import { type Reply, discard } from '../../http/reply.ts';
import { isStrictPreferred } from '../../http/representation/negotiation.ts';
import type { Fields } from '../../http/request.ts';
import type { Visitor } from '../../http/visitor.ts';
import { countForPlace, createPageCount } from '../../operations/http/operation-rates.ts';
import { operationPath, outcomeMembers } from '../../operations/http/operations.ts';
import { readBodyBytesMax, socketRequestsInFlightMax } from '../../operations/limits.ts';
import { type FailureLogs, failureMember, loggedFailure } from '../../pipeline/failures.ts';
import type { IncomingRequest } from '../../pipeline/incoming-request.ts';
import type { Serving } from '../../pipeline/serving.ts';
import { Failure } from '../../values/failure.ts';
import { jsonPieces } from '../../values/json/prepared-json.ts';
import { type Caller, canWrite } from '../../values/key.ts';
import { MIB } from '../../values/units.ts';
import { operationBodyBytesMax } from '../limits.ts';
import { UnfinishedMessage, WebSocketMessage, corkForTurn, sendPieces } from './message.ts';
import { type ContentPacket, contentPacket } from './packet.ts';
import { Subscriptions } from './subscriptions.ts';

/** Unsent bytes to a client; with more, the server closes its websocket with 1013. */
export const socketBufferedBytesMax = 4 * MIB;

/** Pings of a client between two pings of the server. */
export const socketPingsMax = 1_000;

/** The caller of a websocket's handshake, with its origin, fields and proxy claims. */
export interface SocketOpening {
  readonly caller: Caller;
  readonly origin: string;
  readonly fields: Fields;
  readonly claims: ProxyClaims;
  readonly certificate: IncomingRequest['certificate'];
}

/** The dependencies of websockets. */
export interface SessionParts extends FailureLogs {
  readonly serving: () => Serving;
  readonly shared: SharedLimits;
}

/** A Close frame (RFC 6455 §5.5.1). */
export interface Close {
  readonly code: number;
  readonly reason: string;
}

/** The longest wait for answers in flight to a caller whose key or session has ended. */
const endedGraceMs = 5_000;

const tooSlow = 'The client reads its answers too slowly.';
const authenticateName = 'svc1.session.authenticate';

/**
 * One open websocket. It answers envelopes as they arrive and sends the packets of subscriptions as
 * the log grows.
 */
export class WebSocketSession {
  readonly subscriptions: Subscriptions;
  readonly #websocket: WebSocket;
  readonly #connection: Duplex;
  readonly #opening: SocketOpening;
  readonly #parts: SessionParts;
  readonly #unfinished: UnfinishedMessage;
  readonly #abort = new AbortController();
  /** Received messages that wait for an earlier one, in order. */
  readonly #waiting: Buffer[] = [];
  #caller: Caller;
  #unwatchEnd: () => void = () => undefined;
  #inFlight = 0;
  #lastContent: Promise<unknown> = Promise.resolve();
  /** Whether a message is authenticating the client: later messages wait for its result. */
  #isAuthenticating = false;
  #hasPong = true;
  /** Pings of the client since the last ping of the server. */
  #pings = 0;
  #onIdle: (() => void) | undefined;
  /** Whether the server refused input of the client: it reads nothing more. */
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
      countUnread: (pieces) => this.#countUnread(pieces),
      limits: parts.limits,
      sendFailure: (...failed) => this.#sendFailure(...failed),
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
    this.#watchEnd();
    websocket.on('message', (data, isBinary) => {
      this.#receive(data, isBinary);
    });
    websocket.on('pong', () => {
      this.#hasPong = true;
    });
    websocket.on('close', () => {
      this.#abort.abort();
      this.#unwatchEnd();
      this.subscriptions.stop();
      this.#unfinished.stop();
      this.#onIdle?.();
    });
    // ws closes the connection itself after a protocol error, with the code for that error.
    websocket.on('error', (error) => {
      parts.log.debug({ err: error }, 'websocket error');
      parts.limits.passed('websocket_frames', this.#caller.address, error.message);
    });
    websocket.on('ping', (payload) => {
      this.#pong(payload);
    });
  }

  /** Sends a ping; ends the connection if the client did not answer the previous one. */
  ping(): void {
    // While the server does not read the client, it does not get its pongs.
    if (this.#websocket.isPaused) return;
    if (!this.#hasPong) {
      // The client gets a ping only after the data before it, which may be unread.
      if (this.subscriptions.isPaused) this.#closeUnread();
      else this.#websocket.terminate();
      return;
    }
    this.#hasPong = false;
    this.#pings = 0;
    this.#websocket.ping();
  }

  /**
   * Waits for the answers in flight, then closes; resolves to whether the grace period cut an
   * answer off.
   */
  async end(graceMs: number, { code, reason }: Close): Promise<boolean> {
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
      this.#onIdle = () => {
        resolve(false);
      };
      if (this.#inFlight === 0) this.#onIdle();
    });
    const cut = await Promise.race([idle, timer]);
    this.subscriptions.stop();
    this.#websocket.resume();
    this.#websocket.close(code, reason);
    const late = await Promise.race([closed, timer]);
    if (late) this.#websocket.terminate();
    return cut;
  }

  /** Closes the websocket when the key or session of its caller ends, also if nothing happens. */
  #watchEnd(): void {
    this.#unwatchEnd();
    this.#unwatchEnd = this.#parts.serving().callerEnds.watch(this.#caller, (failure) => {
      this.subscriptions.fail(failure);
      void this.end(endedGraceMs, { code: 1008, reason: failure.message });
    });
  }

  #receive(data: RawData, isBinary: boolean): void {
    if (isBinary) {
      this.#websocket.close(1003, 'Send envelopes in text frames.');
      return;
    }
    this.#parts.serving().refresh();
    this.#waiting.push(data as Buffer);
    this.#begin();
  }

  /** Starts waiting messages in order, as far as the limits allow. */
  #begin(): void {
    const open = this.#isOpen();
    // After a Close frame no answer can be sent, so no message starts.
    if (!open) this.#waiting.length = 0;
    while (this.#inFlight < socketRequestsInFlightMax && !this.#isAuthenticating) {
      const bytes = this.#waiting.shift();
      if (bytes === undefined) break;
      this.#inFlight += 1;
      void this.#answer(bytes);
    }
    // The last chunk may contain many messages. Pausing leaves the ones after them in the client's
    // socket buffer.
    const full = this.#waiting.length > 0 || this.#inFlight >= socketRequestsInFlightMax;
    if (open && full) this.#websocket.pause();
    else if (this.#onIdle === undefined) this.#websocket.resume();
    this.#unfinished.check();
  }

  /** Returns the size limit of the client's next message; Infinity while its scopes are unknown. */
  #messageBytesMax(): number {
    if (this.#isRefused || this.#isAuthenticating || this.#waiting.length > 0) return Infinity;
    return canWrite(this.#callerNow()) ? operationBodyBytesMax : readBodyBytesMax;
  }

  /**
   * Returns an allocation from the process's limit of request bytes, for one message of this
   * client.
   */
  #allocation(): Allocation {
    return this.#parts.shared.requests.allocation(this.#caller);
  }

  /** Closes the websocket of a client that broke a limit. */
  #refuse(code: number, { limit, message }: Failure): void {
    if (this.#isRefused || !this.#isOpen()) return;
    this.#isRefused = true;
    if (limit !== undefined) this.#parts.limits.passed(limit, this.#caller.address, message);
    this.#websocket.close(code, message);
    // ws would store further messages until the client's Close frame; the server discards them
    // instead.
    this.#connection.removeAllListeners('data').resume();
    this.#connection.end();
  }

  async #answer(bytes: Buffer): Promise<void> {
    const message = new WebSocketMessage(bytes);
    const { operation } = message;
    this.#isAuthenticating = operation === authenticateName;
    const allocation = this.#allocation();
    let echo: { readonly id?: unknown } = {};
    try {
      echo = message.echo();
      allocation.grow(bytes.length);
      const members = await this.#run(message, echo);
      this.#send({ r: operation, ...members, ...echo });
    } catch (thrown) {
      this.#sendFailure(operation, thrown, echo);
    } finally {
      allocation.free();
      if (operation === authenticateName) this.#isAuthenticating = false;
      this.#inFlight -= 1;
      this.#begin();
      if (this.#inFlight === 0) this.#onIdle?.();
    }
  }

  async #run(message: WebSocketMessage, echo: { readonly id?: unknown }): Promise<object> {
    const serving = this.#parts.serving();
    const { execute, requireUnrevoked, visitors } = serving;
    const caller = this.#callerNow();
    const visitor = visitors.visitorOf({
      ...this.#opening,
      target: { origin: this.#opening.origin },
      address: caller.address,
    });
    const counted = this.#countForRates(message.operation, caller, visitor);
    if (counted !== undefined) await counted;
    // A caller with a revoked key may still authenticate with another one.
    if (message.operation !== authenticateName) requireUnrevoked(caller);
    const signal = (): AbortSignal => this.#abort.signal;
    const read = message.parse(execute, { caller, signal });
    const envelope = read instanceof Promise ? await read : read;
    if (read instanceof Promise) requireUnrevoked(caller);
    const { a, v, vk, qk, prefer, draft } = envelope;
    if (a === '' || a !== message.operation) {
      throw new Failure('invalid', 'a must name an operation.', { field: 'a' });
    }
    const { origin, fields } = this.#opening;
    const countedFor = [operationPath(a, serving.config.server.base)];
    const rated = { name: a, v, origin, fields, caller, visitor, countedFor };
    await countForPlace(serving.rates, rated);
    const call = {
      caller,
      vk,
      qk,
      draft,
      origin,
      fields,
      visitor,
      transport: 'websocket' as const,
      isStrict: isStrictPreferred(prefer),
      countPage: createPageCount(serving, rated),
      signal,
    };
    const outcome = await execute.run(a, v, call);
    if (outcome.kind === 'reply') return { data: await this.#collect(outcome.reply) };
    if (outcome.kind === 'stream') {
      this.subscriptions.add({ name: a, stream: outcome.stream, call, echo });
      return { data: outcome.data };
    }
    if (outcome.caller !== undefined) {
      this.#caller = outcome.caller;
      this.#watchEnd();
    }
    if (outcome.unsubscribed !== undefined) this.subscriptions.remove(outcome.unsubscribed);
    return outcomeMembers(outcome);
  }

  /** Counts a message for the rates of the path at which HTTP has its operation. */
  #countForRates(operation: string, caller: Caller, visitor: Visitor): void | Promise<void> {
    const { rates, config } = this.#parts.serving();
    const { origin, fields } = this.#opening;
    return rates?.count({
      ...{ origin, path: operationPath(operation, config.server.base), fields },
      address: caller.address,
      visitor: () => visitor,
      keyId: () => caller.keyId,
    });
  }

  /** Collects one content at a time, so that one client has at most one content in memory. */
  #collect(reply: Reply): Promise<ContentPacket> {
    const packet = this.#lastContent.then(async () => {
      if (this.#isOpen()) return contentPacket(reply);
      await discard(reply);
      throw new Failure('unavailable', 'The websocket is closed.');
    });
    this.#lastContent = packet.catch(() => undefined);
    return packet;
  }

  /**
   * Returns the caller; one without a key gets the scopes that the configuration grants at this
   * moment.
   */
  #callerNow(): Caller {
    const { keyId, address } = this.#caller;
    if (keyId !== undefined) return this.#caller;
    return this.#parts.serving().authenticate({ apikey: undefined, address });
  }

  #sendFailure(operation: string, thrown: unknown, echo: object): Failure {
    const { failure, id } = loggedFailure(this.#parts, thrown, this.#caller.address);
    const error = failureMember(this.#parts.serving(), operation, failure, id);
    this.#send({ r: operation, error, ...echo });
    return failure;
  }

  #send(envelope: object): void {
    if (!this.#isOpen()) return;
    // Only earlier unread bytes count, because one answer may exceed the limit on its own. Packets
    // of subscriptions do not count: they wait for the client themselves.
    const unread = this.#websocket.bufferedAmount - this.subscriptions.unsentBytes;
    if (unread > socketBufferedBytesMax) {
      this.#closeUnread();
    } else {
      const pieces = jsonPieces(envelope);
      corkForTurn(this.#connection);
      sendPieces(this.#websocket, pieces, this.#countUnread(pieces));
    }
  }

  /**
   * Counts an answer as unread until the caller calls the returned function; throws when too many
   * bytes are unread.
   */
  #countUnread(pieces: readonly Buffer[]): () => void {
    const encrypted = 'encrypted' in this.#connection;
    return this.#parts.shared.unread.hold(this.#caller, pieces, { encrypted });
  }

  /** Answers a ping, unless the client sends too many. */
  #pong(payload: Buffer): void {
    this.#pings += 1;
    if (!this.#isOpen()) return;
    if (this.#pings > socketPingsMax) {
      this.#parts.limits.passed('websocket_pings', this.#caller.address);
      this.#websocket.close(1008, 'The client sends too many pings.');
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
