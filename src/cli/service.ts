import { Failure, isFailureCode } from '../model/failure.ts';
import { isJsonObject, type JsonObject } from '../model/json.ts';
import type { Config } from '../config/config.ts';
import { UsageError, type Terminal } from './command.ts';
import { requireConfig } from './options.ts';

/** The options of every command that is a client of the HTTP API. */
export const serviceOptions = {
  url: { type: 'string' },
  apikey: { type: 'string' },
  config: { type: 'string' },
} as const;

/**
 * Where the API is and with which key it is called; the environment stands in for what is left out.
 */
export interface Service {
  readonly url?: string | undefined;
  readonly apikey?: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
}

const requestTimeoutMs = 60_000;

/** The words of the options, for a usage. */
export const serviceUsage = '[--url URL | --config FILE] [--apikey KEY] [--json]';

/**
 * The service that options name: by its URL, or by the ini file of the server (contract §1). Throws
 * UsageError where that tells no address, and a Failure with the file's mistakes.
 */
export async function serviceOf(
  { url, apikey, config }: Readonly<Record<keyof typeof serviceOptions, string | undefined>>,
  terminal: Terminal,
): Promise<Service> {
  const { env } = terminal;
  if (url !== undefined || config === undefined) return { url, apikey, env };
  return { url: addressOf(await requireConfig(config, terminal)), apikey, env };
}

/** Where a server of a configuration is reached from its own machine, unless it names an origin. */
function addressOf({ server: { listen, publicUrl, base } }: Config): string {
  if (publicUrl !== undefined) return publicUrl + base;
  const where = listen.find((one) => one.kind === 'tcp' && one.port !== 0);
  if (where?.kind !== 'tcp') {
    throw new UsageError('The ini file tells no address: --url, or WAYMARK_URL.');
  }
  const { scheme, host, port } = where;
  const isHere = ['', '::', '0.0.0.0', '127.0.0.1'].includes(host);
  const name = isHere ? 'localhost' : host.includes(':') ? `[${host}]` : host;
  return `${scheme}://${name}:${port}${base}`;
}

/**
 * Calls an operation and resolves to the envelope of its answer. Throws the operation's own
 * failure, `unavailable` when nothing answers there, UsageError when there is no URL to ask.
 */
export async function callService(
  { url, apikey, env }: Service,
  name: string,
  envelope: object,
): Promise<JsonObject> {
  const base = url ?? env.WAYMARK_URL;
  if (base === undefined) {
    throw new UsageError(
      'Where is the server? --url, or WAYMARK_URL: http://localhost:8080 or such; or --config.',
    );
  }
  const key = apikey ?? env.WAYMARK_APIKEY;
  const path = name.replace(/^svc1\./, '').replace('.', '/');
  const answer = await post(`${base.replace(/\/$/, '')}/svc1/${path}`, key, envelope);
  if (!isJsonObject(answer) || typeof answer.r !== 'string') {
    throw new Failure('bad_gateway', `${base} answers, but it is no Waymark.`);
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
  'It is that of --apikey or WAYMARK_APIKEY; `waymark key add` makes one, beside the server.';

async function post(url: string, key: string | undefined, envelope: object): Promise<unknown> {
  if (!URL.canParse(url)) throw new UsageError(`${url} is not a URL.`);
  let reply: Response;
  try {
    reply = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(key !== undefined && { apikey: key }) },
      body: JSON.stringify(envelope),
      // Nobody else gets the key.
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
      `${asked} sends on to ${origin}: that is what --url or WAYMARK_URL has to be.`,
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
  if (typeof code !== 'string' || !tlsCode.test(code)) return `Nothing answers at ${url}.`;
  return (
    `The certificate of ${new URL(url).origin} is not trusted (${code}). ` +
    'NODE_EXTRA_CA_CERTS names a PEM file with those who vouch for it.'
  );
}
