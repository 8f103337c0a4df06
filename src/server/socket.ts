import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { WebSocketServer, type RawData, type WebSocket } from 'ws';
import type { Fields } from '../http/request.ts';
import type { Log } from '../observe/log.ts';
import { Failure, failureFrom } from '../model/failure.ts';
import { isJsonObject, nestsDeeper } from '../model/json.ts';
import type { Caller } from '../model/key.ts';
import {
  jsonDepthMax,
  socketBufferedBytesMax,
  socketFrameBytesMax,
  socketPingMs,
  socketRequestsInFlightMax,
} from '../model/limits.ts';
import { envelopeFrom, parseJson } from './envelope.ts';
import { failureMember } from './failures.ts';
import { outcomeMembers } from './operations.ts';
import { contentPacket } from './packet.ts';
import type { Serving } from './serving.ts';

/** Who opened a websocket, and by which origin. */
export interface SocketOpening {
  readonly caller: Caller;
  readonly origin: string;
  readonly fields: Fields;
}

/** The websockets of `{base}/svc1/ws` (contract §5). */
export interface Sockets {
  /** Completes the upgrade of a request that the door and the key check have let through. */
  open(message: IncomingMessage, socket: Duplex, head: Buffer, opening: SocketOpening): void;
  readonly size: number;
  /**
   * Closes every websocket with 1001 once its requests in flight are answered; resolves when all
   * are gone.
   */
  close(graceMs: number): Promise<number>;
}

/**
 * Makes the websocket side of the operations: the same envelopes, each connection with its own
 * caller.
 */
export function createSockets({
  serving,
  log,
  newId,
}: {
  readonly serving: () => Serving;
  readonly log: Log;
  readonly newId: () => string;
}): Sockets {
  const server = new WebSocketServer({
    noServer: true,
    maxPayload: socketFrameBytesMax,
    perMessageDeflate: false,
  });
  const sessions = new Set<Session>();
  const pings = setInterval(() => {
    for (const session of sessions) session.ping();
  }, socketPingMs);
  pings.unref();

  return {
    open(message, socket, head, opening) {
      server.handleUpgrade(message, socket, head, (websocket) => {
        const session = new Session(websocket, opening, { serving, log, newId });
        sessions.add(session);
        websocket.once('close', () => sessions.delete(session));
      });
    },
    get size() {
      return sessions.size;
    },
    async close(graceMs) {
      clearInterval(pings);
      const ends = [...sessions].map((session) => session.end(graceMs));
      return (await Promise.all(ends)).filter((cut) => cut).length;
    },
  };
}

const authenticateName = 'svc1.session.authenticate';

/** One open websocket. */
class Session {
  readonly #websocket: WebSocket;
  readonly #opening: SocketOpening;
  readonly #serving: () => Serving;
  readonly #log: Log;
  readonly #newId: () => string;
  readonly #abort = new AbortController();
  /** What has been received but not begun, in order. */
  readonly #waiting: string[] = [];
  #caller: Caller;
  #inFlight = 0;
  /** Whether the client is saying who it is: what it sends after that counts on it. */
  #identifying = false;
  #alive = true;
  #idle: (() => void) | undefined;

  constructor(
    websocket: WebSocket,
    opening: SocketOpening,
    { serving, log, newId }: { serving: () => Serving; log: Log; newId: () => string },
  ) {
    this.#websocket = websocket;
    this.#opening = opening;
    this.#caller = opening.caller;
    this.#serving = serving;
    this.#log = log;
    this.#newId = newId;
    websocket.on('message', (data, isBinary) => {
      this.#receive(data, isBinary);
    });
    websocket.on('pong', () => {
      this.#alive = true;
    });
    websocket.on('close', () => {
      this.#abort.abort();
      this.#idle?.();
    });
    // ws closes the connection itself after an error of the protocol, with the code that says
    // which.
    websocket.on('error', (error) => {
      log.debug({ err: error }, 'websocket error');
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
      this.#websocket.terminate();
      return;
    }
    this.#alive = false;
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
    this.#waiting.push((data as Buffer).toString());
    this.#begin();
  }

  /** Begins what waits, in order, as far as it may be begun yet. */
  #begin(): void {
    const open = this.#isOpen();
    // Nothing is begun after a goodbye: there would be no answer to tell of it.
    if (!open) this.#waiting.length = 0;
    while (this.#inFlight < socketRequestsInFlightMax && !this.#identifying) {
      const text = this.#waiting.shift();
      if (text === undefined) break;
      this.#inFlight += 1;
      void this.#answer(text).finally(() => {
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
  }

  async #answer(text: string): Promise<void> {
    let echo: object = {};
    let operation = '';
    try {
      const sent = parseJson(text);
      if (isJsonObject(sent)) {
        const { id, a } = sent;
        if (typeof a === 'string') operation = a;
        // An id that cannot be written as JSON again could not be echoed.
        if (nestsDeeper(id, jsonDepthMax)) {
          throw new Failure('too_large', `id nests deeper than ${jsonDepthMax} levels.`, {
            field: 'id',
          });
        }
        if (id !== undefined) echo = { id };
        this.#identifying = operation === authenticateName;
      }
      const members = await this.#run(sent);
      this.#send({ r: operation, ...members, ...echo });
    } catch (thrown) {
      const failure = failureFrom(thrown);
      const id = this.#newId();
      const { code, cause, message } = failure;
      if (code === 'internal') this.#log.error({ err: cause, id }, 'request failed');
      else if (cause !== undefined) this.#log.warn({ err: cause, id, code }, message);
      this.#send({ r: operation, error: failureMember(failure, id), ...echo });
    } finally {
      if (operation === authenticateName) this.#identifying = false;
    }
  }

  async #run(sent: unknown): Promise<object> {
    const { execute, requireUnrevoked } = this.#serving();
    const { a, v, vk, qk } = envelopeFrom(sent);
    if (a === '') throw new Failure('invalid', 'a must name an operation.', { field: 'a' });
    requireUnrevoked(this.#caller);
    const outcome = await execute.run(a, v, {
      caller: this.#caller,
      vk,
      qk,
      origin: this.#opening.origin,
      fields: this.#opening.fields,
      signal: this.#abort.signal,
    });
    if (outcome.kind === 'reply') return { data: await contentPacket(outcome.reply) };
    if (outcome.caller !== undefined) this.#caller = outcome.caller;
    return outcomeMembers(outcome);
  }

  #send(envelope: object): void {
    if (!this.#isOpen()) return;
    // What counts is what lies unread already: one answer alone may be larger than the limit.
    if (this.#websocket.bufferedAmount > socketBufferedBytesMax) {
      this.#websocket.close(1013, 'Answers are not being read fast enough.');
    } else {
      this.#websocket.send(JSON.stringify(envelope));
    }
  }

  #isOpen(): boolean {
    return this.#websocket.readyState === this.#websocket.OPEN;
  }
}
