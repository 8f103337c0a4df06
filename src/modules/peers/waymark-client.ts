import { StringDecoder } from 'node:string_decoder';
import { Failure, isFailureCode, type Problem } from '../../core/values/failure.ts';
import { isJsonObject, type JsonObject } from '../../core/values/json/json.ts';
import { openApiSocket, type ApiSocket } from './api-socket.ts';
import { apiSocketSilentMs } from '../../core/outbound/limits.ts';

/** The input of an operation, and the fields of the request that it depends on. */
export interface ClientRequest {
  readonly v: unknown;
  readonly vk?: string | undefined;
  readonly qk?: string | undefined;
  readonly draft?: string | undefined;
  /** The API key; none for an anonymous caller. */
  readonly apikey: string | undefined;
  /** Further header fields, by their lower-case names. */
  readonly fields?: Readonly<Record<string, string>>;
  /** How long `call` waits for the answer; by default as long as the client says. */
  readonly timeoutMs?: number;
}

/** A client of the operations of another Waymark. Each rejection is a Failure. */
export interface WaymarkClient {
  readonly url: string;
  /**
   * Calls an operation, and resolves to the envelope of its answer. Rejects with the failure of
   * the operation, or with `unavailable` if the server does not answer.
   */
  call(name: string, request: ClientRequest): Promise<JsonObject>;
  /** The lines of an answer of NDJSON, some at a time. Rejects as `call` does. */
  lines(name: string, request: ClientRequest, signal: AbortSignal): AsyncIterable<string[]>;
  /**
   * Calls an operation over a websocket: yields the data of its answer, and then those of the
   * packets. Ends when the signal aborts; rejects as `call` does, also if the server is silent.
   */
  packets(name: string, request: ClientRequest, signal: AbortSignal): AsyncIterable<JsonObject>;
  /**
   * A file at a path below `/svc1/`, from its byte `first` on. Rejects as `call` does; the chunks
   * throw what the connection does.
   */
  download(path: string, request: DownloadRequest, signal: AbortSignal): Promise<Download>;
}

/** What a download asks for. */
interface DownloadRequest {
  readonly apikey: string | undefined;
  readonly first: number;
}

/** A file that another server sends. */
interface Download {
  /** The byte at which the chunks begin: 0 if the server sends the whole file. */
  readonly first: number;
  readonly chunks: AsyncIterable<Uint8Array>;
}

/** Makes a client of the server at a URL, which may have a path before its `/svc1`. */
export function createWaymarkClient(
  url: string,
  {
    timeoutMs,
    fields: ownFields,
  }: {
    readonly timeoutMs: number;
    /** Header fields of each request. */
    readonly fields: () => Readonly<Record<string, string>>;
  },
): WaymarkClient {
  const post = async (name: string, request: ClientRequest, signal: AbortSignal) => {
    const { v, vk, qk, draft, apikey, fields = {} } = request;
    try {
      return await fetch(`${url}/svc1/${name.replace(/^svc1\./, '').replace('.', '/')}`, {
        method: 'POST',
        headers: {
          ...ownFields(),
          ...fields,
          'content-type': 'application/json',
          ...(apikey !== undefined && { apikey }),
        },
        body: JSON.stringify({ v, vk, qk, draft }),
        // A redirect must not carry the key to another server.
        redirect: 'error',
        signal,
      });
    } catch (error) {
      throw unreachable(url, error);
    }
  };

  return {
    url,
    async call(name, request) {
      const signal = AbortSignal.timeout(request.timeoutMs ?? timeoutMs);
      const reply = await post(name, request, signal);
      const envelope: unknown = await reply.json().catch((error: unknown) => {
        throw error instanceof SyntaxError
          ? noEnvelope(url, reply.status)
          : unreachable(url, error);
      });
      return checked(url, envelope);
    },
    async *lines(name, request, signal) {
      const reply = await post(name, request, signal);
      const type = reply.headers.get('content-type') ?? '';
      if (!reply.ok || !type.includes('ndjson')) {
        checked(url, await reply.json().catch(() => undefined));
        throw new Failure('bad_gateway', `${url} did not answer with rows.`);
      }
      try {
        yield* linesOf(reply.body ?? []);
      } catch (error) {
        if (error instanceof Failure) throw error;
        throw unreachable(url, error);
      }
    },
    download: (path, request, signal) =>
      downloadFrom(url, path, { ...request, fields: ownFields() }, signal),
    packets: (name, request, signal) =>
      packetsOf(url, name, { ...request, fields: ownFields() }, signal),
  };
}

async function downloadFrom(
  url: string,
  path: string,
  { apikey, first, fields }: DownloadRequest & Required<Pick<ClientRequest, 'fields'>>,
  signal: AbortSignal,
): Promise<Download> {
  const headers = {
    ...fields,
    ...(apikey !== undefined && { apikey }),
    ...(first > 0 && { range: `bytes=${first}-` }),
    // Its bytes count, not a coding of them.
    'accept-encoding': 'identity',
  };
  const options = { headers, redirect: 'error', signal } as const;
  const reply = await fetch(`${url}/svc1/${path}`, options).catch((error: unknown) => {
    throw unreachable(url, error);
  });
  if (!reply.ok) {
    checked(url, await reply.json().catch(() => undefined));
    throw new Failure('bad_gateway', `${url} answers ${reply.status} instead of a file.`);
  }
  return { first: reply.status === 206 ? first : 0, chunks: chunksOf(reply) };
}

/**
 * The content of an answer. It refers to the answer until somebody reads it: undici cancels the
 * body of one that was collected as garbage, and then it ends at once, as if it were empty.
 */
async function* chunksOf(reply: Response): AsyncGenerator<Uint8Array> {
  yield* reply.body ?? [];
}

/** The envelope of an answer. Throws its failure. */
function checked(url: string, envelope: unknown): JsonObject {
  if (!isJsonObject(envelope) || typeof envelope.r !== 'string') {
    throw new Failure('bad_gateway', `${url} answers, but it is not a Waymark server.`);
  }
  const { error } = envelope;
  if (!isJsonObject(error)) return envelope;
  const { code, message, field, problems } = error;
  const text = typeof message === 'string' ? message : 'The server gave no reason.';
  throw new Failure(isFailureCode(code) ? code : 'unavailable', text, {
    ...(typeof field === 'string' && { field }),
    ...(Array.isArray(problems) && { problems: problems as unknown as readonly Problem[] }),
    ...((code === 'unavailable' || code === 'rate_limited') && { retryAfterSeconds: 5 }),
  });
}

/** The failure for an answer that is no JSON: a proxy in front of the server has made it. */
function noEnvelope(url: string, status: number): Failure {
  if (status === 413) {
    const advice = 'raise its limit.';
    const message = `A proxy in front of ${url} refuses the size of the request (413): ${advice}`;
    return new Failure('too_large', message);
  }
  if (status >= 500) {
    const message = `${url} answers ${status}: its proxy does not reach the server.`;
    return new Failure('unavailable', message, { retryAfterSeconds: 5 });
  }
  return new Failure('bad_gateway', `${url} answers ${status}, but it is not a Waymark server.`);
}

function unreachable(url: string, error: unknown): Failure {
  const { cause = error } = (error ?? {}) as { cause?: unknown };
  const { code = '', message = '' } = (cause ?? {}) as { code?: string; message?: string };
  const reason = typeof code === 'string' && code !== '' ? code : message;
  return new Failure('unavailable', `${url} cannot be reached (${reason}).`, {
    retryAfterSeconds: 5,
    cause: error,
  });
}

async function* linesOf(chunks: AsyncIterable<Uint8Array> | []): AsyncGenerator<string[]> {
  const decoder = new StringDecoder('utf8');
  let rest = '';
  for await (const chunk of chunks) {
    const lines = (rest + decoder.write(Buffer.from(chunk))).split('\n');
    rest = lines.pop() ?? '';
    if (lines.length > 0) yield lines;
  }
  // A line without its end is a part of one.
}

/** Opens a websocket for one operation that sends packets. */
async function* packetsOf(
  url: string,
  name: string,
  { v, apikey, fields = {} }: ClientRequest,
  signal: AbortSignal,
): AsyncGenerator<JsonObject> {
  let socket: ApiSocket | undefined;
  try {
    socket = await openApiSocket({ url: `${url}/svc1/ws`, apikey, fields, signal });
    const { data } = await socket.subscribe(name, v as JsonObject);
    yield data;
    for (;;) for (const packet of await socket.next(apiSocketSilentMs)) yield packet.data;
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    socket?.close();
  }
}
