import { Readable } from 'node:stream';
import type { Release } from '../../core/fair/shared-limit.ts';
import { cgiName } from '../../core/http/reading/fields.ts';
import { addressFields } from '../../core/http/reading/forwarded.ts';
import { type FieldList, type Reply, fieldLines } from '../../core/http/reply.ts';
import type { Fields } from '../../core/http/request.ts';
import type { ServerPlaces } from '../../core/outbound/server-places.ts';
import type { Dialler } from '../../core/outbound/dialler.ts';
import type { SourceResponse } from '../../core/outbound/exchange.ts';
import { Failure } from '../../core/values/failure.ts';
import { unknownAddress } from '../../core/values/network/peer.ts';
import { sentUrlOf } from '../../core/values/path.ts';
import { KIB } from '../../core/values/units.ts';
import type { AccessRequest } from './access-request.ts';

/** How long another server may take for a decision, and the content of its refusal. */
const forwardTimeoutMs = 5_000;
const forwardContentBytesMax = 64 * KIB;

/** What another server has decided: fields for the source, or its answer for the client. */
type ForwardDecision =
  | { readonly isAllowed: true; readonly fields: FieldList }
  | { readonly isAllowed: false; readonly reply: Reply };

/** The server that `forward` names, and the fields of its answers that `copy` names. */
export interface ForwardTo {
  /** As in OutgoingRequest. */
  readonly origin: string;
  readonly target: string;
  readonly copy: readonly string[];
  /** The source of its answers: `access:<name>`. */
  readonly source: string;
}

/** Fields of a client that the other server does not get: framing, and what it gets from here. */
const notSent: ReadonlySet<string> = new Set([
  ...['accept-encoding', 'apikey', 'connection', 'expect', 'host', 'http2-settings', 'keep-alive'],
  ...['proxy', 'proxy-authorization', 'proxy-connection', 'range', 'te', 'trailer'],
  ...['transfer-encoding', 'upgrade', 'via'],
]);

/** Starts of names in which proxies say who asked for what: a client must not say it itself. */
const proxyPrefixes = [
  ...['x-forwarded', 'x-original', 'x-rewrite', 'x-real-ip', 'x-client-ip', 'x-cluster-client'],
  ...['x-auth-request', 'x-envoy', 'x-http-method', 'x-remote', 'x-url-scheme', 'x-sent-from'],
  ...['client-ip', 'front-end-https', 'forwarded'],
];

/** Whole names of that kind. */
const proxyNames: ReadonlySet<string> = new Set([
  ...['x-host', 'x-scheme', 'x-method', 'x-method-override', 'x-uri'],
  ...addressFields,
]);

function isMadeByProxies(name: string): boolean {
  return proxyNames.has(name) || proxyPrefixes.some((start) => name.startsWith(start));
}

/** Fields of an answer that are not for the client, or that the content's new length changes. */
const notReturned: ReadonlySet<string> = new Set([
  ...['alt-svc', 'clear-site-data', 'connection', 'content-length', 'date', 'keep-alive'],
  ...['proxy-authenticate', 'proxy-connection', 'server', 'strict-transport-security', 'te'],
  ...['trailer', 'transfer-encoding', 'upgrade', 'via'],
]);

/**
 * Asks another server about a request, as Caddy's `forward_auth` does: with a GET that has the
 * fields of the client and its method, scheme, host, URI and address in `X-Forwarded-…`. Clients
 * share the places at that server. Rejects with `unavailable` if it does not answer in time, or not
 * in HTTP.
 */
export async function askForward(
  { dialler, places }: { readonly dialler: Dialler; readonly places: ServerPlaces },
  to: ForwardTo,
  request: AccessRequest,
): Promise<ForwardDecision> {
  const timeout = AbortSignal.timeout(forwardTimeoutMs);
  const asker = { address: request.visitor.address, signal: timeout };
  let release: Release | undefined;
  try {
    release = await places.of(to.origin, { isHttp2: false }, asker);
    const answer = await dialler.send({
      origin: to.origin,
      target: to.target,
      method: 'GET',
      fields: sentFields(request, to.copy),
      body: undefined,
      signal: timeout,
      timeoutMs: forwardTimeoutMs,
    });
    if (answer.status >= 200 && answer.status < 300) {
      // Read to its end, so that the connection serves the next decision.
      await contentOf(answer);
      return { isAllowed: true, fields: copiedFields(answer, to.copy) };
    }
    return { isAllowed: false, reply: await refusalOf(answer, to.source) };
  } catch (cause) {
    throw new Failure('unavailable', 'The server that decides about this page does not answer.', {
      ...{ cause, source: to.source, retryAfterSeconds: 5 },
    });
  } finally {
    release?.();
  }
}

function sentFields(request: AccessRequest, copy: readonly string[]): FieldList {
  const { origin, fields, visitor, method } = request;
  const { protocol, host } = new URL(origin);
  const sent: string[] = [];
  for (const [name, value] of Object.entries(withoutSpoofed(fields, copy))) {
    const isOwn = notSent.has(name) || isMadeByProxies(name) || /^(?:content-|if-)/.test(name);
    if (value !== undefined && !isOwn && /^[a-z0-9-]+$/.test(name)) sent.push(name, value);
  }
  const uri = sentUrlOf({ ...request, origin: '' });
  return [
    ...sent,
    ...['x-forwarded-method', method, 'x-forwarded-proto', protocol.slice(0, -1)],
    ...['x-forwarded-host', host, 'x-forwarded-uri', uri],
    ...(visitor.address === unknownAddress ? [] : ['x-forwarded-for', visitor.address]),
  ];
}

/**
 * Fields without some names, in any spelling that a source may take for one of them; Connection
 * does not name them either, or a client could have them left out (RFC 9110 §7.6.1).
 */
export function withoutSpoofed(fields: Fields, names: readonly string[]): Fields {
  if (names.length === 0) return fields;
  const spoofed = new Set(names.map(cgiName));
  const found = Object.keys(fields).filter((name) => spoofed.has(cgiName(name)));
  const { connection } = fields;
  const options = connection?.split(',') ?? [];
  const kept = options.filter((option) => !spoofed.has(cgiName(option.trim().toLowerCase())));
  if (found.length === 0 && kept.length === options.length) return fields;
  const others = Object.create(null) as Record<string, string | undefined>;
  Object.assign(others, fields);
  for (const name of found) Reflect.deleteProperty(others, name);
  if (kept.length < options.length) others.connection = kept.join(',');
  return others;
}

function copiedFields({ fields }: SourceResponse, copy: readonly string[]): FieldList {
  return copy.flatMap((name) => {
    const lines = fieldLines(fields, name);
    return lines.length === 0 ? [] : [name, lines.join(', ')];
  });
}

/** The answer of the other server for the client, without content if that is too long. */
async function refusalOf(answer: SourceResponse, source: string): Promise<Reply> {
  const { status } = answer;
  // Any other answer is none about this request.
  if (status < 300 || status === 304 || status >= 500) throw new Error(`it answers ${status}`);
  const bytes = await contentOf(answer);
  const fields = answer.fields.filter((_, at) => {
    const name = answer.fields[at - (at % 2)]?.toLowerCase() ?? '';
    return !notReturned.has(name) && name !== 'cache-control' && name !== 'expires';
  });
  return {
    status,
    fields: [...fields, 'Cache-Control', 'no-store', 'Content-Length', String(bytes.length)],
    body: { kind: 'bytes', bytes },
    source,
  };
}

async function contentOf(answer: SourceResponse): Promise<Buffer> {
  const content = answer.content();
  if (Buffer.isBuffer(content)) {
    return content.length > forwardContentBytesMax ? Buffer.alloc(0) : content;
  }
  const chunks: Buffer[] = [];
  let bytes = 0;
  // Leaving the loop early destroys the stream, and so aborts the request.
  for await (const chunk of Readable.from(content) as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > forwardContentBytesMax) return Buffer.alloc(0);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
