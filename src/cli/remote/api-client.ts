import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { Option } from 'commander';
import type { Config } from '../../core/config/config.ts';
import { Failure, isFailureCode } from '../../core/values/failure.ts';
import { parseJson } from '../../core/values/json/parse.ts';
import { type JsonObject, isJsonObject } from '../../core/values/json/json.ts';
import type { Operations } from '../client/operations.ts';
import { type Terminal, UsageError } from '../command.ts';
import { configOption, findConfigFile, requireConfig } from '../options.ts';

/** How long a command waits for an answer of the API. */
const apiTimeoutMs = 60_000;

/** The options of every command that calls the HTTP API. */
export function apiOptions(): readonly Option[] {
  return [
    new Option('--url <url>', 'the server, such as http://localhost:8080; default: WAYMARK_URL'),
    new Option('--apikey <key>', 'the API key; default: WAYMARK_APIKEY'),
    configOption(),
  ];
}

/** The option of commands that can read or change a draft. */
export function draftOption(): Option {
  return new Option('--draft <name>', 'read and change this open draft instead of the live state');
}

/** The values of these options. */
export interface ApiTargetOptions {
  readonly draft?: string;
  readonly url?: string;
  readonly apikey?: string;
  readonly config?: string;
}

/** The URL of a server, and the API key for its operations. */
export interface ApiTarget {
  readonly url: string;
  readonly apikey: string | undefined;
  /** The draft that operations read or change. */
  readonly draft?: string | undefined;
}

/**
 * Finds the server to call: `--url`, `--config`, WAYMARK_URL, or else the ini file in its usual
 * place (docs/design/configuration.md#commands). Throws UsageError if none of these gives an
 * address, and a Failure for mistakes in the ini file.
 */
export async function apiTargetOf(
  options: ApiTargetOptions,
  terminal: Terminal,
): Promise<ApiTarget> {
  const { env } = terminal;
  const { apikey = env.WAYMARK_APIKEY, draft } = options;
  const named = options.url ?? (options.config === undefined ? env.WAYMARK_URL : undefined);
  if (named !== undefined && named !== '') return { url: serverUrl(named), apikey, draft };
  const file = findConfigFile(options.config, terminal);
  if (file === undefined) {
    throw new UsageError(
      'there is no server to call. Give --url http://localhost:8080, set WAYMARK_URL, or name ' +
        'the ini file of the server by --config.',
    );
  }
  return { url: addressOf(await requireConfig(file, terminal), file), apikey, draft };
}

/** A server's URL without its final slash. Throws UsageError if it has no scheme. */
function serverUrl(text: string): string {
  const scheme = URL.canParse(text) ? new URL(text).protocol : '';
  if (scheme === 'http:' || scheme === 'https:') return text.replace(/\/$/, '');
  throw new UsageError(
    `${JSON.stringify(text)} is not the URL of a server: it must start with http:// or https://` +
      `${URL.canParse(`http://${text}`) ? `, such as http://${text}` : ''}.`,
  );
}

/** The URL of a server from its configuration: its public URL, or an address of this machine. */
function addressOf({ server: { listen, publicUrl, base } }: Config, file: string): string {
  if (publicUrl !== undefined) return publicUrl + base;
  const where = listen.find((one) => one.kind === 'tcp' && one.port !== 0);
  if (where?.kind !== 'tcp') {
    throw new UsageError(
      `${file} has no TCP address in \`listen\`. Give --url, or set WAYMARK_URL.`,
    );
  }
  const { scheme, host, port } = where;
  const isHere = ['', '::', '0.0.0.0', '127.0.0.1'].includes(host);
  const name = isHere ? 'localhost' : host.includes(':') ? `[${host}]` : host;
  return `${scheme}://${name}:${port}${base}`;
}

/**
 * Calls an operation, by its name without `svc1.` or with it, and resolves to the envelope of its
 * answer. Rejects with the failure of the
 * operation, or `unavailable` if the server does not answer.
 */
export function callApi<Name extends keyof Operations>(
  service: ApiTarget,
  name: Name,
  envelope: object,
): Promise<JsonObject & { readonly data: Operations[Name]['output'] }>;
export function callApi(service: ApiTarget, name: string, envelope: object): Promise<JsonObject>;
export async function callApi(
  service: ApiTarget,
  name: string,
  envelope: object,
): Promise<JsonObject> {
  const { draft } = service;
  const content = { type: 'application/json', body: JSON.stringify({ ...envelope, draft }) };
  return postToApi(service, name, content);
}

/** The body that is posted to an operation, and the query with further fields of its input. */
interface Content {
  readonly type: string;
  readonly body: string | Uint8Array<ArrayBuffer> | Blob;
  /** By default POST. */
  readonly method?: 'POST' | 'PUT';
  readonly query?: string;
  /** The header field Prefer (RFC 7240). */
  readonly prefer?: string;
  /** How long the answer may take; by default, `apiTimeoutMs`. */
  readonly timeoutMs?: number;
}

/** Calls an operation with a body that is not an envelope; otherwise as callApi. */
export async function postToApi(
  { url, apikey }: ApiTarget,
  name: string,
  { query = '', timeoutMs = apiTimeoutMs, ...content }: Content,
): Promise<JsonObject> {
  const signal = AbortSignal.timeout(timeoutMs);
  const timed = { ...content, timeoutMs };
  const reply = await send(`${operationUrl(url, name)}${query}`, apikey, timed, signal);
  return requireAnswer(url, reply);
}

/** Uploads an asset, with no limit of time; otherwise as callApi. */
export async function putToApi(
  { url, apikey, draft }: ApiTarget,
  name: string,
  body: Blob,
): Promise<JsonObject & { readonly data: StoredAsset }> {
  const query = draft === undefined ? '' : `?draft=${encodeURIComponent(draft)}`;
  const path = name.split('/').map(encodeURIComponent).join('/');
  const content = { method: 'PUT', type: 'application/octet-stream', body } as const;
  const reply = await send(`${url}/svc1/asset/${path}${query}`, apikey, content, undefined);
  return (await requireAnswer(url, reply)) as JsonObject & { readonly data: StoredAsset };
}

/** Uploads the file of assets without a row, by its hash; otherwise as putToApi. */
export async function putFileToApi(
  { url, apikey, draft }: ApiTarget,
  sha256: string,
  body: Blob,
): Promise<void> {
  const query = draft === undefined ? '' : `?draft=${encodeURIComponent(draft)}`;
  const content = { method: 'PUT', type: 'application/octet-stream', body } as const;
  const reply = await send(`${url}/svc1/asset-file/${sha256}${query}`, apikey, content, undefined);
  await requireAnswer(url, reply);
}

/** The row of an asset that was uploaded. */
type StoredAsset = JsonObject & {
  readonly name: string;
  readonly bytes: number;
  readonly contenttype: string;
};

/**
 * Calls an operation that streams, and yields the lines of its answer as they arrive. Throws as
 * callApi rejects, and `unavailable` if the connection ends.
 */
export async function* linesFromApi(
  { url, apikey }: ApiTarget,
  name: string,
  v: JsonObject,
): AsyncGenerator<JsonObject, void, undefined> {
  const content = { type: 'application/json', body: JSON.stringify({ v }) };
  const reply = await send(operationUrl(url, name), apikey, content, undefined);
  if (reply.headers.get('content-type') !== 'application/x-ndjson') {
    await requireAnswer(url, reply);
    throw new Failure('bad_gateway', `${url} answers, but not with lines of JSON.`);
  }
  const lines = createInterface({ input: Readable.from(reply.body ?? []), crlfDelay: Infinity });
  try {
    for await (const line of lines) yield parseJson(line) as JsonObject;
  } catch (error) {
    throw new Failure('unavailable', `The connection to ${url} has ended.`, { cause: error });
  }
}

function operationUrl(url: string, name: string): string {
  return `${url}/svc1/${name.replace(/^svc1\./, '').replace('.', '/')}`;
}

/** The envelope of an answer. Throws the failure that it has instead of data. */
async function requireAnswer(url: string, reply: Response): Promise<JsonObject> {
  const text = await reply.text().catch(() => '');
  const answer = parsedJson(text);
  if (!isJsonObject(answer) || typeof answer.r !== 'string') {
    const isLine = reply.headers.get('content-type')?.startsWith('text/plain') === true;
    const said = isLine ? `: ${oneLine(text.slice(0, saidCharactersMax))}` : '.';
    throw new Failure(
      'bad_gateway',
      `${url} answers ${reply.status}, but not as a Waymark server${said}`,
    );
  }
  if (answer.error === undefined) return answer;
  const { code, message, docs } = answer.error as JsonObject;
  const why =
    typeof message === 'string' ? message : 'The server refused the request without a reason.';
  throw new Failure(
    isFailureCode(code) && code !== 'internal' ? code : 'unavailable',
    code === 'unauthenticated' ? `${why} ${keyAdvice}` : why,
    typeof docs === 'string' && /^\/[\w./#-]+$/.test(docs)
      ? { docs: new URL(url).origin + docs }
      : {},
  );
}

const keyAdvice =
  'Give a key by --apikey or WAYMARK_APIKEY; `waymark key add` on the server makes one.';

/** Characters of another server's answer that a message quotes. */
const saidCharactersMax = 200;

/** A text of another server for a terminal. */
function oneLine(text: string): string {
  return text.replaceAll(/[\s\p{Cc}]+/gu, ' ').trim();
}

function parsedJson(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

async function send(
  url: string,
  key: string | undefined,
  { type, body, prefer, method = 'POST', timeoutMs = 0 }: Content,
  signal: AbortSignal | undefined,
): Promise<Response> {
  let reply: Response;
  try {
    reply = await fetch(url, {
      method,
      headers: {
        'content-type': type,
        ...(key !== undefined && { apikey: key }),
        ...(prefer !== undefined && { prefer }),
      },
      body,
      // A redirect must not carry the key to another server.
      redirect: 'manual',
      ...(signal && { signal }),
    });
  } catch (error) {
    throw new Failure('unavailable', whyNoAnswer(url, error, timeoutMs), { cause: error });
  }
  const location = reply.headers.get('location');
  if (location !== null && URL.canParse(location, url)) {
    const { origin } = new URL(location, url);
    const called = new URL(url).origin;
    throw new Failure(
      'unavailable',
      `${called} redirects to ${origin}. Use that URL in --url or WAYMARK_URL.`,
    );
  }
  return reply;
}

/** The error codes of OpenSSL and Node for certificates and TLS handshakes. */
const tlsCode = /^(?:ERR_TLS_|ERR_SSL_|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_)/;

function whyNoAnswer(url: string, error: unknown, timeoutMs: number): string {
  if (error instanceof Error && error.name === 'TimeoutError') {
    return (
      `${url} did not answer within ${timeoutMs / 1000} s. ` +
      'It may still carry out the request: look whether it has, before you repeat it.'
    );
  }
  const { code } = (error instanceof Error ? (error.cause ?? error) : {}) as { code?: unknown };
  if (typeof code !== 'string' || !tlsCode.test(code))
    return `No server answers at ${url}. Is it running?`;
  return (
    `The certificate of ${new URL(url).origin} is not trusted (${code}). ` +
    'Set NODE_EXTRA_CA_CERTS to a PEM file with the certificate of its authority.'
  );
}
