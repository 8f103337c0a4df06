import { parseNumbers } from '../../core/values/json/exact-number.ts';
import { WaymarkError, type AnswerEnvelope } from './envelope.ts';

/** The server of a connection, and the key. */
export interface ConnectionOptions {
  /** The server, with its base if it has one: `https://www.example.com`. */
  readonly url: string;
  /** The API key; without one, the client is anonymous. */
  readonly apikey?: string;
  /** In place of the global class, for tests and old environments. */
  readonly WebSocket?: typeof WebSocket;
}

/** An open websocket with its requests. */
export interface ClientConnection {
  /** Sends a request; resolves to the envelope of its answer. */
  request(name: string, members: object, signal?: AbortSignal): Promise<AnswerEnvelope>;
  /** Sends a request; yields its answer and the packets after it, until the websocket closes. */
  stream(
    name: string,
    members: object,
    signal?: AbortSignal,
  ): AsyncGenerator<AnswerEnvelope, void, undefined>;
  close(): void;
  /** Resolves when the websocket is closed. */
  readonly closed: Promise<void>;
}

/**
 * Opens a websocket and authenticates it. Rejects with a WaymarkError for a wrong key, and with an
 * Error if the server cannot be reached.
 */
export async function openConnection(options: ConnectionOptions): Promise<ClientConnection> {
  const { url, apikey, WebSocket: Socket = WebSocket } = options;
  const socket = new Socket(`${url.replace(/^http/, 'ws').replace(/\/$/, '')}/svc1/ws`);
  const connection = connectionOf(socket);
  await new Promise<void>((resolve, reject) => {
    socket.addEventListener('open', () => {
      resolve();
    });
    socket.addEventListener('close', () => {
      reject(new Error(`There is no websocket at ${url}/svc1/ws.`));
    });
  });
  if (apikey === undefined) return connection;
  const { error } = await connection.request('svc1.session.authenticate', { v: { apikey } });
  if (error === undefined) return connection;
  connection.close();
  throw new WaymarkError(error);
}

/** Where the envelopes for one request go; undefined means that there are no more. */
type Receiver = (envelope: AnswerEnvelope | undefined) => void;

function connectionOf(socket: WebSocket): ClientConnection {
  const receivers = new Map<number, Receiver>();
  let newest = 0;
  const closed = new Promise<void>((resolve) => {
    socket.addEventListener('close', () => {
      for (const receive of receivers.values()) receive(undefined);
      receivers.clear();
      resolve();
    });
  });
  socket.addEventListener('error', () => undefined);
  socket.addEventListener('message', ({ data }) => {
    const envelope = parseNumbers(String(data)) as AnswerEnvelope;
    receivers.get(envelope.id ?? 0)?.(envelope);
  });
  function send(name: string, members: object, receive: Receiver): number {
    newest += 1;
    receivers.set(newest, receive);
    if (socket.readyState === socket.OPEN) {
      socket.send(JSON.stringify({ a: name, id: newest, ...members }));
    } else {
      receive(undefined);
    }
    return newest;
  }
  return {
    closed,
    close: () => {
      socket.close();
    },
    request: (name, members, signal) =>
      new Promise((resolve, reject) => {
        const id = send(name, members, (envelope) => {
          receivers.delete(id);
          if (envelope !== undefined) resolve(envelope);
          else reject(new Error('The websocket was closed before the answer.'));
        });
        signal?.addEventListener('abort', () => {
          receivers.delete(id);
          reject(signal.reason as Error);
        });
      }),
    stream: (name, members, signal) => streamOf(receivers, send, { name, members, signal }),
  };
}

async function* streamOf(
  receivers: Map<number, Receiver>,
  send: (name: string, members: object, receive: Receiver) => number,
  {
    name,
    members,
    signal,
  }: {
    readonly name: string;
    readonly members: object;
    readonly signal: AbortSignal | undefined;
  },
): AsyncGenerator<AnswerEnvelope, void, undefined> {
  const waiting: (AnswerEnvelope | undefined)[] = [];
  let wake = (): void => undefined;
  const receive: Receiver = (envelope) => {
    waiting.push(envelope);
    wake();
  };
  const id = send(name, members, receive);
  const abort = (): void => {
    receive(undefined);
  };
  signal?.addEventListener('abort', abort);
  try {
    for (;;) {
      if (waiting.length === 0) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      const envelope = waiting.shift();
      if (envelope === undefined) return;
      yield envelope;
    }
  } finally {
    receivers.delete(id);
    signal?.removeEventListener('abort', abort);
  }
}
