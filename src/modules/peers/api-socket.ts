import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import { apiSocketSilentMs } from '../../core/outbound/limits.ts';
import { Failure, isFailureCode } from '../../core/values/failure.ts';
import { parseJson } from '../../core/values/json/parse.ts';
import { type Json, type JsonObject, isJsonObject } from '../../core/values/json/json.ts';
import { loadWs } from '../../core/values/lazy-packages.ts';

/** How long the websocket to another Waymark server takes to open. */
const apiSocketConnectMs = 10_000;

/** How often it is pinged, and after which silence it is closed. */
const apiSocketPingMs = 5_000;

/** Packets of it, and bytes of them, that wait until they are read. */
export const apiSocketPacketsMax = 1_000;
const apiSocketBufferedBytesMax = 8 * 2 ** 20;

/** The bytes of one message: a row of the log may have content of many MiB. */
const apiSocketMessageBytesMax = 512 * 2 ** 20;

/** A packet of a subscription: what the request to subscribe returned, and one change. */
interface ApiPacket {
  /** The id that `subscribe` returned. */
  readonly id: number;
  readonly data: JsonObject;
}

/** The options of openApiSocket. */
interface ApiSocketOptions {
  /** `http(s)://host[:port][/base]/svc1/ws`. */
  readonly url: string;
  readonly apikey: string | undefined;
  /** Further header fields of the request. */
  readonly fields?: Readonly<Record<string, string>>;
  /** An open connection to the server, with TLS if the URL has https; by default, a new one. */
  readonly connection?: Duplex;
  /** Ends the websocket. */
  readonly signal: AbortSignal;
}

/**
 * Opens the websocket of a Waymark server. Rejects with `unavailable` if it cannot be opened now,
 * with `unauthenticated` if the server refuses the key, with `bad_gateway` if the URL is not that
 * of a Waymark server.
 */
export async function openApiSocket(options: ApiSocketOptions): Promise<ApiSocket> {
  const { url, apikey, fields = {}, connection, signal } = options;
  const websocket = new (loadWs().WebSocket)(url.replace(/^http/, 'ws'), {
    headers: { ...fields, ...(apikey !== undefined && { apikey }) },
    perMessageDeflate: false,
    maxPayload: apiSocketMessageBytesMax,
    handshakeTimeout: apiSocketConnectMs,
    followRedirects: false,
    ...(connection !== undefined && { createConnection: () => connection as never }),
  });
  const abort = (): void => {
    websocket.terminate();
  };
  signal.addEventListener('abort', abort);
  websocket.once('close', () => {
    signal.removeEventListener('abort', abort);
  });
  if (signal.aborted) abort();
  await new Promise<void>((resolve, reject) => {
    websocket.once('open', resolve);
    websocket.once('unexpected-response', (request, { statusCode = 0 }) => {
      request.destroy();
      reject(refusal(url, statusCode));
    });
    websocket.once('error', (cause: NodeJS.ErrnoException) => {
      const why = cause.code ?? cause.message;
      reject(new Failure('unavailable', `No connection to ${url} (${why}).`, { cause }));
    });
  });
  return new ApiSocket(websocket);
}

function refusal(url: string, status: number): Failure {
  if (status === 401 || status === 403) {
    return new Failure('unauthenticated', `${url} refuses the API key.`);
  }
  if (status === 429 || status >= 500) {
    return new Failure('unavailable', `${url} answers ${status}.`);
  }
  const message = `${url} answers ${status}: it is not the websocket of a Waymark server.`;
  return new Failure('bad_gateway', message);
}

interface Pending {
  readonly resolve: (data: JsonObject) => void;
  readonly reject: (failure: Failure) => void;
}

/**
 * An open websocket of a Waymark server. Packets wait in a bounded buffer: the socket is not read
 * while it is full, so the server waits too.
 */
export class ApiSocket {
  readonly #websocket: WebSocket;
  readonly #pending = new Map<number, Pending>();
  #packets: ApiPacket[] = [];
  #packetBytes = 0;
  #lastId = 0;
  #ended: Failure | undefined;
  #wake: () => void = () => undefined;

  constructor(websocket: WebSocket) {
    this.#websocket = websocket;
    const silence = this.#watchSilence();
    websocket.on('message', (bytes: Buffer) => {
      this.#receive(bytes);
    });
    websocket.on('error', () => undefined);
    websocket.once('close', (code, reason) => {
      clearInterval(silence);
      const why = reason.length > 0 ? `${code}: ${reason.toString()}` : String(code);
      this.#end(new Failure('unavailable', `The server has closed the websocket (${why}).`));
    });
  }

  /**
   * Calls an operation; resolves to the data of its answer. Rejects with the failure of the
   * operation, or `unavailable` if the websocket ends first.
   */
  call(name: string, v: JsonObject, vk?: string): Promise<JsonObject> {
    return this.#send(name, v, vk).answer;
  }

  /** Calls an operation that streams; its packets come from `next`, with the id. */
  async subscribe(
    name: string,
    v: JsonObject,
  ): Promise<{ readonly id: number; readonly data: JsonObject }> {
    const { id, answer } = this.#send(name, v);
    return { id, data: await answer };
  }

  /**
   * The packets that have arrived, in their order; waits for the first one, at most `waitMs`, and
   * then is empty. Rejects with `unavailable` once the websocket has ended, or with the failure by
   * which the server has ended a subscription.
   */
  async next(waitMs: number): Promise<readonly ApiPacket[]> {
    if (this.#packets.length === 0 && this.#ended === undefined) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, waitMs);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      this.#wake = () => undefined;
    }
    const packets = this.#packets;
    this.#packets = [];
    this.#packetBytes = 0;
    if (packets.length === 0 && this.#ended !== undefined) throw this.#ended;
    if (this.#websocket.isPaused) this.#websocket.resume();
    return packets;
  }

  close(): void {
    this.#websocket.terminate();
  }

  #send(
    name: string,
    v: JsonObject,
    vk?: string,
  ): { readonly id: number; readonly answer: Promise<JsonObject> } {
    this.#lastId += 1;
    const id = this.#lastId;
    const answer = new Promise<JsonObject>((resolve, reject) => {
      if (this.#ended !== undefined) reject(this.#ended);
      else this.#pending.set(id, { resolve, reject });
    });
    this.#websocket.send(JSON.stringify({ a: name, v, vk, id }), () => undefined);
    return { id, answer };
  }

  /** Sends pings, and ends when nothing has come for a while. */
  #watchSilence(): NodeJS.Timeout {
    const websocket = this.#websocket;
    let heardMs = performance.now();
    const heard = (): void => {
      heardMs = performance.now();
    };
    for (const event of ['message', 'ping', 'pong']) websocket.on(event, heard);
    return setInterval(() => {
      // While the reader is behind, nothing is read.
      if (websocket.isPaused) heard();
      if (performance.now() - heardMs <= apiSocketSilentMs) websocket.ping();
      else this.#end(new Failure('unavailable', 'The websocket of the server is silent.'));
    }, apiSocketPingMs);
  }

  #receive(bytes: Buffer): void {
    const message = parsed(bytes);
    if (!isJsonObject(message)) {
      this.#websocket.terminate();
      return;
    }
    const id = Number(message.id);
    const pending = this.#pending.get(id);
    if (pending === undefined) {
      // The server ends a subscription with a failure; the caller has to subscribe again.
      if (isJsonObject(message.error)) this.#end(failureOf(message.error));
      else if (isJsonObject(message.data)) this.#keep({ id, data: message.data }, bytes.length);
      return;
    }
    this.#pending.delete(id);
    if (isJsonObject(message.error)) pending.reject(failureOf(message.error));
    else pending.resolve(isJsonObject(message.data) ? message.data : {});
  }

  #keep(packet: ApiPacket, bytes: number): void {
    this.#packets.push(packet);
    this.#packetBytes += bytes;
    const isFull =
      this.#packets.length >= apiSocketPacketsMax || this.#packetBytes > apiSocketBufferedBytesMax;
    if (isFull) this.#websocket.pause();
    this.#wake();
  }

  #end(failure: Failure): void {
    this.#ended ??= failure;
    this.#websocket.terminate();
    for (const { reject } of this.#pending.values()) reject(failure);
    this.#pending.clear();
    this.#wake();
  }
}

function parsed(bytes: Buffer): Json | undefined {
  try {
    return parseJson(bytes.toString()) as Json;
  } catch {
    return undefined;
  }
}

function failureOf({ code, message, field }: JsonObject): Failure {
  const known = isFailureCode(code) && code !== 'internal' ? code : 'unavailable';
  return new Failure(
    known,
    typeof message === 'string' ? message : 'The server refused the request without a reason.',
    typeof field === 'string' ? { field } : {},
  );
}
