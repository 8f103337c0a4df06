import { readFile } from 'node:fs/promises';
import { type Duplex, Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import type { Connect } from '../../core/outbound/connector.ts';
import type { Dialler } from '../../core/outbound/dialler.ts';
import { placeOf } from '../../core/outbound/place.ts';
import { Failure, isFailureCode } from '../../core/values/failure.ts';
import { parseJson } from '../../core/values/json/parse.ts';
import { type Json, type JsonObject, isJsonObject } from '../../core/values/json/json.ts';
import { MIB } from '../../core/values/units.ts';
import { type ApiSocket, openApiSocket } from '../peers/api-socket.ts';

/** Bytes of an answer of a data host. */
const hostAnswerBytesMax = 64 * MIB;

/** A data host: another server with the operations `record.*`. */
export interface DataHost {
  /** Its URL: `https://host[:port][/base]/svc1/ws`. */
  readonly url: string;
  /** The file with the API key for it; undefined for none. */
  readonly keyFile: string | undefined;
}

/** A call of an operation of a data host. */
interface HostCall {
  /** `svc1.record.insert`. */
  readonly name: string;
  readonly v: JsonObject;
  readonly vk: string | undefined;
  readonly qk: string | undefined;
  readonly isStrict: boolean;
  readonly signal: AbortSignal;
}

/** Calls data hosts, at addresses that the ini file permits. Each rejection is a Failure. */
export interface HostClient {
  /**
   * Resolves to the envelope of the answer. Rejects with the failure of the host, or with
   * `unavailable` if it does not answer.
   */
  call(host: DataHost, call: HostCall): Promise<JsonObject>;
  /** Opens a websocket, as openApiSocket does. */
  connect(host: DataHost, signal: AbortSignal): Promise<ApiSocket>;
}

/**
 * Makes a client; `connect` checks addresses as the dialler does. `via` is the name of this server
 * in Via, as for a dialler: who writes tables names the host, which may be this server.
 */
export function createHostClient({
  dialler,
  connect,
  via,
}: {
  readonly dialler: Pick<Dialler, 'send'>;
  readonly connect: Connect;
  readonly via: string;
}): HostClient {
  return {
    async call(host, { name, v, vk, qk, isStrict, signal }) {
      const url = httpUrl(host);
      const body = Buffer.from(JSON.stringify({ v, vk, qk }));
      const apikey = await keyOf(host);
      const path = name.replace(/^svc1\./, '').replace('.', '/');
      try {
        const reply = await dialler.send({
          origin: url.origin,
          target: `${url.pathname}${path}`,
          method: 'POST',
          fields: [
            ...['host', url.host, 'content-type', 'application/json'],
            ...['content-length', String(body.length)],
            ...(apikey === undefined ? [] : ['apikey', apikey]),
            ...(isStrict ? ['prefer', 'handling=strict'] : []),
          ],
          body: Readable.from([body]),
          signal,
        });
        return checked(await readAnswer(reply.content()));
      } catch (error) {
        throw notReached(host, error);
      }
    },
    async connect(host, signal) {
      const url = httpUrl(host);
      const apikey = await keyOf(host);
      const connection = await openConnection(connect, url).catch((error: unknown) => {
        throw notReached(host, error);
      });
      const fields = { via: `1.1 ${via}` };
      return openApiSocket({ url: `${url.href}ws`, apikey, fields, connection, signal });
    },
  };
}

/** `http(s)://host[:port][/base]/svc1/`. */
function httpUrl({ url: text }: DataHost): URL {
  const url = new URL(text.replace(/^ws/i, 'http'));
  const base = url.pathname.replace(/\/svc1(?:\/ws)?\/?$/, '').replace(/\/$/, '');
  return new URL(`${url.origin}${base}/svc1/`);
}

async function keyOf({ keyFile }: DataHost): Promise<string | undefined> {
  if (keyFile === undefined) return undefined;
  try {
    return (await readFile(keyFile, 'utf8')).trim();
  } catch (cause) {
    const { code = '' } = cause as NodeJS.ErrnoException;
    const message = `Cannot read the file with the key of the data host (${code}).`;
    throw new Failure('unavailable', message, { cause, retryAfterSeconds: 5 });
  }
}

function openConnection(connect: Connect, url: URL): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    connect(placeOf(url.origin), (error, socket) => {
      if (error === null) resolve(socket);
      else reject(error);
    });
  });
}

/** Reads JSON of a limited size; undefined for anything else. */
async function readAnswer(content: Buffer | Readable): Promise<Json | undefined> {
  const bytes = Buffer.isBuffer(content) ? content : await buffer(limited(content));
  try {
    return parseJson(bytes.toString()) as Json;
  } catch {
    return undefined;
  }
}

async function* limited(content: Readable): AsyncIterable<Buffer> {
  let bytes = 0;
  for await (const chunk of content as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > hostAnswerBytesMax) {
      throw new Failure('bad_gateway', 'The answer of the data host is too large.');
    }
    yield chunk;
  }
}

/** A failure that the host itself has answered. */
class HostFailure extends Failure {}

function checked(envelope: Json | undefined): JsonObject {
  if (!isJsonObject(envelope) || typeof envelope.r !== 'string') {
    throw new Failure('bad_gateway', 'The data host answers, but it is not a Waymark server.');
  }
  const { error } = envelope;
  if (!isJsonObject(error)) return envelope;
  const { code, message, field } = error;
  const text = typeof message === 'string' ? message : 'The data host gave no reason.';
  // The key is that of this server: its caller is not the one without access.
  const isOurs = code === 'unauthenticated' || code === 'forbidden';
  if (isOurs) throw new HostFailure('bad_gateway', `The data host refuses this server: ${text}`);
  throw new HostFailure(isFailureCode(code) && code !== 'internal' ? code : 'bad_gateway', text, {
    ...(typeof field === 'string' && { field }),
  });
}

function notReached({ url }: DataHost, error: unknown): Failure {
  if (error instanceof HostFailure) return error;
  const why = error instanceof Error ? error.message : String(error);
  const message = `The data host ${new URL(url).host} cannot be reached: ${why}`;
  return new Failure('unavailable', message, { retryAfterSeconds: 5, cause: error });
}
