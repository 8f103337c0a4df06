import type { Operations, Streams } from './operations.ts';
import { parseNumbers } from '../../core/values/json/exact-number.ts';
import { openConnection, type ClientConnection, type ConnectionOptions } from './connection.ts';
import { WaymarkError, type AnswerEnvelope } from './envelope.ts';

export type { Json } from '../../core/values/json/json.ts';
export { isExactNumber, type ExactNumber } from '../../core/values/json/exact-number.ts';
export type { Operations, Streams } from './operations.ts';
export { WaymarkError } from './envelope.ts';
export { verifyWebhook, WebhookError, type WebhookEvent } from './webhook.ts';

/** How to reach a Waymark, and how `call` sends requests. */
export interface ClientOptions extends ConnectionOptions {
  /** By default `fetch`: each request is an HTTP request of its own. */
  readonly transport?: 'fetch' | 'websocket';
  /** In place of the global function, for tests and old environments. */
  readonly fetch?: typeof fetch;
}

/** The members of a request besides its input. */
export interface CallOptions {
  /** Idempotency key: a repeated request with it gets the first answer again. */
  readonly vk?: string;
  /** Query kind, such as `history` of a read. */
  readonly qk?: string;
  /** Refuses a write with a field that is not valid. */
  readonly strict?: boolean;
  readonly signal?: AbortSignal;
}

/** The answer of an operation. */
export interface Answer<Data> {
  readonly data: Data;
  readonly vk?: string;
  /** True if this is the answer to an earlier request with the same vk. */
  readonly replayed?: boolean;
}

/** The streams that continue after a seq. */
export type ResumableStream = {
  [Name in keyof Streams]: Streams[Name]['packet'] extends { readonly seq: number } ? Name : never;
}[keyof Streams];

/** The options of a subscription. */
export interface SubscribeOptions {
  /** Packets after this seq; without it, from now on. */
  readonly fromSeq?: number;
  readonly signal?: AbortSignal;
  /** Runs when the connection is lost, with the delay before the next attempt. */
  readonly onReconnect?: (delayMs: number) => void;
}

/** A client of one server. */
export interface Client {
  /** Calls an operation. Rejects with a WaymarkError, or with an error of the connection. */
  call<Name extends keyof Operations>(
    name: Name,
    input: Operations[Name]['input'],
    options?: CallOptions,
  ): Promise<Answer<Operations[Name]['output']>>;
  /**
   * Yields each change once and in the order of seq, also across lost connections and restarts of
   * the server. Ends when `signal` aborts; throws a WaymarkError if the server refuses.
   */
  subscribe<Name extends ResumableStream>(
    name: Name,
    input: Omit<Streams[Name]['input'], 'from_seq'>,
    options?: SubscribeOptions,
  ): AsyncGenerator<Streams[Name]['packet'], void, undefined>;
  /** Closes the websocket of `call`, if there is one. */
  close(): void;
}

/** Creates a client; it connects when it is first used. */
export function createClient(options: ClientOptions): Client {
  let shared: Promise<ClientConnection> | undefined;
  const connection = (): Promise<ClientConnection> => {
    const opening = (shared ??= openConnection(options));
    void opening.then(
      ({ closed }) => closed.then(() => (shared = undefined)),
      () => (shared = undefined),
    );
    return opening;
  };
  return {
    async call(name, input, { signal, strict, ...members } = {}) {
      const request = {
        v: input,
        ...members,
        ...(strict === true && { prefer: 'handling=strict' }),
      };
      const envelope =
        options.transport === 'websocket'
          ? await (await connection()).request(`svc1.${name}`, request, signal)
          : await post(options, name, request, signal);
      return answerOf(envelope);
    },
    subscribe: (name, input, more) => subscription(options, name, input, more),
    close() {
      void shared?.then((one) => {
        one.close();
      });
    },
  };
}

/** The answer in an envelope. Throws a WaymarkError for a failure. */
function answerOf<Data>({ data, vk, replayed, error }: AnswerEnvelope): Answer<Data> {
  if (error !== undefined) throw new WaymarkError(error);
  return {
    data: data as Data,
    ...(vk !== undefined && { vk }),
    ...(replayed !== undefined && { replayed }),
  };
}

async function post(
  { url, apikey, fetch: send = fetch }: ClientOptions,
  name: string,
  request: object,
  signal: AbortSignal | undefined,
): Promise<AnswerEnvelope> {
  const reply = await send(`${url.replace(/\/$/, '')}/svc1/${name.replace('.', '/')}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(apikey !== undefined && { apikey }) },
    body: JSON.stringify(request),
    ...(signal !== undefined && { signal }),
  });
  const text = await reply.text();
  try {
    return parseNumbers(text) as AnswerEnvelope;
  } catch {
    throw new Error(`The server did not answer with JSON (${reply.status}): ${text.slice(0, 200)}`);
  }
}

const delayMsMin = 250;
const delayMsMax = 30_000;

async function* subscription<Name extends ResumableStream>(
  options: ClientOptions,
  name: Name,
  input: object,
  { fromSeq, signal, onReconnect }: SubscribeOptions = {},
): AsyncGenerator<Streams[Name]['packet'], void, undefined> {
  let seq = fromSeq;
  let delayMs = delayMsMin;
  while (!isAborted(signal)) {
    let connection: ClientConnection | undefined;
    try {
      connection = await openConnection(options);
      const v = { ...input, ...(seq !== undefined && { from_seq: seq }) };
      for await (const { r, data, error } of connection.stream(`svc1.${name}`, { v }, signal)) {
        if (error !== undefined) throw new WaymarkError(error);
        const packet = data as Streams[Name]['packet'];
        delayMs = delayMsMin;
        if (r === `svc1.${name}`) {
          // The answer: the newest seq now. Changes after from_seq arrive as packets.
          seq ??= packet.seq;
        } else {
          seq = packet.seq;
          yield packet;
        }
      }
    } catch (error) {
      if (error instanceof WaymarkError && !isTemporary(error)) throw error;
    } finally {
      connection?.close();
    }
    if (isAborted(signal)) return;
    onReconnect?.(delayMs);
    await pause(delayMs * (0.5 + Math.random() / 2), signal);
    delayMs = Math.min(2 * delayMs, delayMsMax);
  }
}

function isAborted(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true;
}

function isTemporary({ code }: WaymarkError): boolean {
  return ['unavailable', 'rate_limited', 'internal'].includes(code);
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, ms);
    signal?.addEventListener('abort', done, { once: true });
    function done(): void {
      clearTimeout(timer);
      signal?.removeEventListener('abort', done);
      resolve();
    }
  });
}
