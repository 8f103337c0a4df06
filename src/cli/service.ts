import { Option } from 'commander';
import { Failure, isFailureCode } from '../model/failure.ts';
import { isJsonObject, type JsonObject } from '../model/json.ts';
import type { Config } from '../config/config.ts';
import { UsageError, type Terminal } from './command.ts';
import { configOption, findConfigFile, requireConfig } from './options.ts';

/** The options of every command that is a client of the HTTP API. */
export function serviceOptions(): readonly Option[] {
  return [
    new Option('--url <url>', 'the server, such as http://localhost:8080; without it WAYMARK_URL'),
    new Option('--apikey <key>', 'the API key; without it WAYMARK_APIKEY'),
    configOption(),
  ];
}

/** What they give. */
export interface ServiceOptions {
  readonly url?: string;
  readonly apikey?: string;
  readonly config?: string;
}

/** Where the API is and with which key it is called. */
export interface Service {
  readonly url: string;
  readonly apikey: string | undefined;
}

const requestTimeoutMs = 60_000;

/**
 * The service that options name: by its URL, or by the ini file of the server; then the one of the
 * environment, and at last that of the ini file in its usual place
 * (docs/design/configuration.md#commands). Throws UsageError where none of these gives an address,
 * and a Failure with the file's mistakes.
 */
export async function serviceOf(options: ServiceOptions, terminal: Terminal): Promise<Service> {
  const { env } = terminal;
  const apikey = options.apikey ?? env.WAYMARK_APIKEY;
  const named = options.url ?? (options.config === undefined ? env.WAYMARK_URL : undefined);
  if (named !== undefined && named !== '') return { url: serverUrl(named), apikey };
  const file = findConfigFile(options.config, terminal);
  if (file === undefined) {
    throw new UsageError(
      'no server is named. Give --url http://localhost:8080, set WAYMARK_URL, or name the ' +
        'ini file of the server by --config.',
    );
  }
  return { url: addressOf(await requireConfig(file, terminal), file), apikey };
}

/** A server's URL without its last slash. Throws UsageError where it has no scheme. */
function serverUrl(text: string): string {
  const scheme = URL.canParse(text) ? new URL(text).protocol : '';
  if (scheme === 'http:' || scheme === 'https:') return text.replace(/\/$/, '');
  throw new UsageError(
    `${JSON.stringify(text)} is no URL of a server: it has to start with http:// or https://` +
      `${URL.canParse(`http://${text}`) ? `, as http://${text} does` : ''}.`,
  );
}

/** Where a server of a configuration is reached from its own machine, unless it names an origin. */
function addressOf({ server: { listen, publicUrl, base } }: Config, file: string): string {
  if (publicUrl !== undefined) return publicUrl + base;
  const where = listen.find((one) => one.kind === 'tcp' && one.port !== 0);
  if (where?.kind !== 'tcp') {
    throw new UsageError(`${file} names no address. Give --url, or set WAYMARK_URL.`);
  }
  const { scheme, host, port } = where;
  const isHere = ['', '::', '0.0.0.0', '127.0.0.1'].includes(host);
  const name = isHere ? 'localhost' : host.includes(':') ? `[${host}]` : host;
  return `${scheme}://${name}:${port}${base}`;
}

/**
 * Calls an operation and resolves to the envelope of its answer. Throws the operation's own
 * failure, or `unavailable` when nothing answers there.
 */
export async function callService(
  service: Service,
  name: string,
  envelope: object,
): Promise<JsonObject> {
  const content = { type: 'application/json', body: JSON.stringify(envelope) };
  return sendToService(service, name, content);
}

/** What is posted to an operation, and the fields of its input that the query brings. */
interface Content {
  readonly type: string;
  readonly body: string | Uint8Array<ArrayBuffer>;
  readonly query?: string;
  /** The field Prefer (RFC 7240). */
  readonly prefer?: string;
}

/** As callService, with content that is no envelope. */
export async function sendToService(
  { url, apikey }: Service,
  name: string,
  { query = '', ...content }: Content,
): Promise<JsonObject> {
  const path = name.replace(/^svc1\./, '').replace('.', '/');
  const answer = await post(`${url}/svc1/${path}${query}`, apikey, content);
  if (!isJsonObject(answer) || typeof answer.r !== 'string') {
    throw new Failure('bad_gateway', `${url} answers, but it is no Waymark.`);
  }
  if (answer.error === undefined) return answer;
  const { code, message } = answer.error as JsonObject;
  const why = typeof message === 'string' ? message : 'The server refused without saying why.';
  throw new Failure(
    isFailureCode(code) && code !== 'internal' ? code : 'unavailable',
    code === 'unauthenticated' ? `${why} ${whereKeysAre}` : why,
  );
}

const whereKeysAre =
  'Give one by --apikey or WAYMARK_APIKEY; `waymark key add` makes one, on the server itself.';

async function post(
  url: string,
  key: string | undefined,
  { type, body, prefer }: Content,
): Promise<unknown> {
  let reply: Response;
  try {
    reply = await fetch(url, {
      method: 'POST',
      headers: {
        'content-type': type,
        ...(key !== undefined && { apikey: key }),
        ...(prefer !== undefined && { prefer }),
      },
      body,
      // A redirect must not carry the key to another server.
      redirect: 'manual',
      signal: AbortSignal.timeout(requestTimeoutMs),
    });
  } catch (error) {
    throw new Failure('unavailable', whyNoAnswer(url, error), { cause: error });
  }
  const location = reply.headers.get('location');
  if (location !== null && URL.canParse(location, url)) {
    const { origin } = new URL(location, url);
    const asked = new URL(url).origin;
    throw new Failure(
      'unavailable',
      `${asked} redirects to ${origin}. Give that as --url or WAYMARK_URL.`,
    );
  }
  return reply.json().catch(() => undefined);
}

/** As OpenSSL and Node name what is wrong with a certificate or a handshake. */
const tlsCode = /^(?:ERR_TLS_|ERR_SSL_|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_)/;

function whyNoAnswer(url: string, error: unknown): string {
  if (error instanceof Error && error.name === 'TimeoutError') {
    return `${url} did not answer within ${requestTimeoutMs / 1000} s.`;
  }
  const { code } = (error instanceof Error ? (error.cause ?? error) : {}) as { code?: unknown };
  if (typeof code !== 'string' || !tlsCode.test(code))
    return `Nothing answers at ${url}. Is the server running?`;
  return (
    `The certificate of ${new URL(url).origin} is not trusted (${code}). ` +
    'NODE_EXTRA_CA_CERTS names a PEM file with those who vouch for it.'
  );
}
