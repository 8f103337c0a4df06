import { answerAsset } from '../../../modules/assets/upload/asset-upload.ts';
import {
  consoleFile,
  isConsoleOrigin,
  redirectToConsole,
  refuseServiceWorker,
} from '../../../modules/console/console.ts';
import { previewLinkReply } from '../../../modules/drafts/preview-answer.ts';
import { answerMcp } from '../../../modules/mcp/endpoint.ts';
import type { SharedLimit } from '../../fair/shared-limit.ts';
import { pageFields } from '../../http/content/page.ts';
import {
  type FieldList,
  type Reply,
  noBody,
  replyField,
  withVary,
  withoutFields,
} from '../../http/reply.ts';
import { preferredType, prefersHtml } from '../../http/representation/negotiation.ts';
import { type Fields, isRead } from '../../http/request.ts';
import { readBody } from '../../pipeline/body.ts';
import type { Exchange } from '../../pipeline/exchange.ts';
import {
  contentFailure,
  errorPage,
  failureMember,
  operationFailure,
} from '../../pipeline/failures.ts';
import { type IncomingRequest, authenticateRequest } from '../../pipeline/incoming-request.ts';
import type { Serving } from '../../pipeline/serving.ts';
import { readOnlyReply } from '../../pipeline/source.ts';
import { metricsType } from '../../report/metrics.ts';
import { contentBegun } from '../../server/send-content.ts';
import { Failure } from '../../values/failure.ts';
import type { Caller } from '../../values/key.ts';
import { cidrsContain, parseCidr } from '../../values/network/cidr.ts';
import type { Operation } from '../operation.ts';
import { answerOperation, linkName, operationName } from './operations.ts';

/** A validated request below `{base}/svc1`. */
interface ServiceRequest {
  /** The part of the path after `/svc1`. */
  readonly path: string;
  readonly exchange: Exchange;
  readonly incoming: IncomingRequest;
  /** Turns a thrown value into a failure, and logs it under the id in the answer. */
  readonly fail: (thrown: unknown) => { readonly failure: Failure; readonly id: string };
  readonly signal: () => AbortSignal;
  /** When the request arrived, in milliseconds since 1970. */
  readonly nowMs: number;
  /** Limits the bytes of unanswered requests. */
  readonly requests: SharedLimit;
  /** Counts the content of an answer as unread; throws if that is too much. */
  readonly hold: (reply: Reply, caller: Caller | undefined) => void;
}

/**
 * Answers requests for Waymark's own paths: health, engine files, operations. Never rejects; the
 * caller is undefined if no key was checked.
 */
export async function answerService(
  serving: Serving,
  request: ServiceRequest,
): Promise<{ readonly reply: Reply; readonly caller: Caller | undefined }> {
  const { path, exchange, incoming, fail } = request;
  const { fields, target } = incoming;
  const name = operationName(path);
  const r = name ?? `svc1${path}`;
  const operation = name === undefined ? undefined : serving.execute.find(name);
  const cors = corsFields(operation, serving.config.auth.corsOrigins, fields);
  let caller: Caller | undefined;
  try {
    refuseServiceWorker(fields);
    const signIn = operation === undefined ? loginReply(serving, request) : undefined;
    if (signIn !== undefined) return { reply: await signIn, caller };
    const own = operation === undefined ? ownFile(serving, request) : undefined;
    if (own !== undefined) return { reply: own, caller };
    if (path === '/metrics') {
      const told = methodReply(exchange);
      if (told !== undefined) return { reply: told, caller };
      if (!isFromLoopback(exchange, incoming, serving.config.server.publicUrl)) {
        caller = authenticateRequest(serving, incoming);
        serving.execute.admit({ name: r, scope: 'read' }, caller);
      }
      return { reply: plainReply(metricsType, await serving.metricsText()), caller };
    }
    if (path === '/mcp') {
      caller = authenticateRequest(serving, incoming);
      return { reply: await mcpReply(serving, request, caller), caller };
    }
    const asset = await answerAsset(serving, request, (identified) => (caller = identified));
    if (asset !== undefined) return { reply: asset, caller };
    if (name === undefined) throw new Failure('not_found', `There is nothing at ${target.path}.`);
    caller = authenticateRequest(serving, incoming);
    const visitor = serving.visitors.visitorOf(incoming);
    const reply = await answerOperation(serving, {
      ...{ name, exchange, target, fields, caller, visitor },
      signal: request.signal,
      requests: request.requests,
    });
    if (reply.body.kind === 'stream') await contentBegun(reply.body.stream);
    const shown = isConsoleOrigin(serving.config, target.origin) ? withoutScripts(reply) : reply;
    const whole = withFields(shown, cors);
    request.hold(whole, caller);
    return { reply: variesByVisitor(serving) ? notReusable(whole) : whole, caller };
  } catch (thrown) {
    const { failure, id } = fail(thrown);
    // People open breadcrumbs and the documentation, too.
    const isSignIn = operation === undefined && path.startsWith('/login/');
    const isOpened = name === linkName || isSignIn || path.startsWith('/docs/');
    const isPage = isOpened && prefersHtml(fields.accept);
    const reply = isPage
      ? contentFailure(failure, id, fields.accept)
      : operationFailure(serving.config.server.base, r, failure, id);
    const own =
      isPage && name === linkName ? await ownErrorPage(serving, reply, incoming) : undefined;
    return { reply: withFields(own ?? reply, cors), caller };
  }
}

/** The error page of the site for a breadcrumb that a browser opens; undefined without one. */
function ownErrorPage(
  { site, visitors }: Serving,
  reply: Reply,
  incoming: IncomingRequest,
): Promise<Reply | undefined> {
  const visitor = visitors.visitorOf(incoming);
  return errorPage(site, reply, { ...incoming.target, ...incoming, visitor });
}

/** The answer to an automated tool. */
async function mcpReply(
  serving: Serving,
  { exchange, incoming, signal, requests, fail, hold }: ServiceRequest,
  caller: Caller,
): Promise<Reply> {
  const failed = (operation: string, thrown: unknown): object => {
    const { failure, id } = fail(thrown);
    return failureMember(serving.config.server.base, operation, failure, id);
  };
  const asked = { exchange, incoming, caller, signal, requests, failed };
  const reply = await answerMcp(serving, asked);
  hold(reply, caller);
  return reply;
}

/**
 * Whether an answer may depend on a cookie with the user, or on who may see a page and how often:
 * the key of prepared answers contains none of it.
 */
function variesByVisitor({ config, login, rates }: Serving): boolean {
  const { auth, access } = config;
  const isLimited = access.length > 0 || rates !== undefined;
  return auth.jwtJwks !== undefined || login !== undefined || isLimited;
}

/** A page that an operation answers with, which must not run as a page of the console's origin. */
function withoutScripts(reply: Reply): Reply {
  if (replyField(reply, 'content-type') === 'application/json') return reply;
  return { ...reply, fields: [...reply.fields, 'Content-Security-Policy', 'sandbox'] };
}

/** The answer of the sign-in; undefined for any other path. */
function loginReply(
  { login }: Serving,
  { path, exchange: { head, body }, incoming, signal }: ServiceRequest,
): Reply | Promise<Reply> | undefined {
  const rest = /^\/login\/(.*)$/.exec(path)?.[1];
  if (login === undefined || rest === undefined) return undefined;
  const { target, fields, address } = incoming;
  return login.respond({
    ...{ path: rest, target, fields, address, signal, method: head.method },
    body: (bytesMax) => readBody({ body, fields }, bytesMax),
  });
}

function notReusable({ isReusable: _reusable, ...reply }: Reply): Reply {
  return reply;
}

/** Returns one of Waymark's own files; undefined for any other path. */
function ownFile(serving: Serving, request: ServiceRequest): Reply | undefined {
  const { path, exchange, incoming } = request;
  if (path === '/health') return methodReply(exchange) ?? healthReply;
  if (path === '/ws') {
    const told = methodReply(exchange);
    if (told !== undefined) return told;
    throw new Failure('invalid', 'This is the address of the websocket: ask for an upgrade.');
  }
  const console = consoleReply(serving, request);
  if (console !== undefined) return console;
  const docs = docsReply(serving, request);
  if (docs !== undefined) return docs;
  const preview = previewLinkReply(serving, path, request);
  if (preview !== undefined && exchange.head.method === 'POST') return preview;
  if (preview !== undefined) return methodReply(exchange) ?? preview;
  const { publicFiles, documents, indexPages } = serving;
  const name = /^\/engines\/([^/]+)$/.exec(path)?.[1];
  const reference = name === undefined ? undefined : publicFiles.engineReference(name);
  const schemaType = 'application/schema+json';
  const wantsSchema =
    preferredType(incoming.fields.accept, ['text/html', schemaType]) === schemaType;
  const index = indexPages.file(path, incoming.fields.accept);
  const file =
    index ??
    publicFiles.file(path) ??
    (wantsSchema ? reference?.schema : reference?.page) ??
    documents.file(path, incoming.target.origin);
  if (file === undefined) return undefined;
  const varies = index !== undefined || reference !== undefined;
  const fields = varies ? negotiatedFields : ownFields;
  const { method } = exchange.head;
  return (
    methodReply(exchange) ??
    serving.ownFiles.respond(file, { fields, source: 'svc1' }, { method, fields: incoming.fields })
  );
}

/** Returns a file of the console; undefined for any other path. */
function consoleReply(
  { config, consoleFiles, ownFiles }: Serving,
  { path, exchange, incoming }: ServiceRequest,
): Reply | undefined {
  if (path === '/console') return methodReply(exchange) ?? redirectToConsole(config);
  const { origin } = incoming.target;
  const found = consoleFile(config, consoleFiles, { path, origin });
  if (found === undefined) return undefined;
  const { file, fields } = found;
  const { method } = exchange.head;
  const asked = { method, fields: incoming.fields };
  return methodReply(exchange) ?? ownFiles.respond(file, { fields, source: 'svc1' }, asked);
}

/** Returns a file of the documentation; undefined for any other path. */
function docsReply(
  { config, publicFiles: { docs }, ownFiles }: Serving,
  { path, exchange, incoming }: ServiceRequest,
): Reply | undefined {
  if (path !== '/docs' && !path.startsWith('/docs/')) return undefined;
  if (docs.size === 0) {
    throw new Failure('not_found', 'The documentation is not built: run `npm run docs`.');
  }
  // Links of the documentation are relative to its folder.
  if (path === '/docs')
    return methodReply(exchange) ?? redirectReply(`${config.server.base}/svc1/docs/`);
  const found = docs.get(path.slice('/docs/'.length));
  if (found === undefined) return undefined;
  const { fields } = found;
  const asked = { method: exchange.head.method, fields: incoming.fields };
  return methodReply(exchange) ?? ownFiles.respond(found.file, { fields, source: 'svc1' }, asked);
}

function redirectReply(location: string): Reply {
  const fields = ['Location', location, 'Content-Length', '0'];
  return { status: 308, fields, body: noBody, source: 'svc1' };
}

const ownFields: FieldList = [
  'Cache-Control',
  'public, no-cache',
  ...pageFields,
  // Generic pages on other origins load the script from here; tools load the documents.
  'Access-Control-Allow-Origin',
  '*',
];
const negotiatedFields: FieldList = [...ownFields, 'Vary', 'Accept'];

/** Refuses methods other than GET and HEAD, as pages do; undefined for those two. */
function methodReply({ head: { method } }: Exchange): Reply | undefined {
  return isRead(method) ? undefined : { ...readOnlyReply(method), source: 'svc1' };
}

/** Makes an answer that is new for each request. */
function plainReply(contentType: string, text: string): Reply {
  const bytes = Buffer.from(text);
  const fields = ['Content-Type', contentType, 'Content-Length', String(bytes.length)];
  return {
    status: 200,
    fields: [...fields, 'Cache-Control', 'no-store'],
    body: { kind: 'bytes', bytes },
    source: 'svc1',
  };
}

const healthReply = plainReply('application/json', '{"status":"ok"}');

/** Adds fields of the operation to the reply of a page, which they replace there. */
function withFields(reply: Reply, fields: readonly string[]): Reply {
  if (fields.length === 0) return reply;
  const names = fields.filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase());
  const vary = replyField({ fields }, 'vary');
  const kept = withoutFields(reply.fields, ...names.filter((name) => name !== 'vary'));
  const added = withoutFields(fields, 'vary');
  return { ...reply, fields: [...(vary === undefined ? kept : withVary(kept, vary)), ...added] };
}

const loopback = ['127.0.0.0/8', '::1'].flatMap((text) => parseCidr(text) ?? []);
/** Fields of a proxy: it may run on this machine, but its clients do not. */
const proxyFields = ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip'];

/** The Sec-Fetch-Site of a request that no page of another site has made (Fetch Metadata). */
const ownSites: readonly (string | undefined)[] = [undefined, 'none', 'same-origin'];

/**
 * Whether a program on this machine sent a request for itself, rather than a proxy for its clients
 * or a browser for a page of another site. Such a page can give the loopback a name of its own (DNS
 * rebinding), so the host has to be a name of the loopback or that of `ownOrigin`, `public_url`.
 */
function isFromLoopback(
  { peer }: Exchange,
  { fields, target: { origin } }: Pick<IncomingRequest, 'fields' | 'target'>,
  ownOrigin: string | undefined,
): boolean {
  if (!isLoopback(peer.address)) return false;
  if (proxyFields.some((name) => fields[name] !== undefined)) return false;
  if ((fields.origin ?? origin) !== origin) return false;
  if (!ownSites.includes(fields['sec-fetch-site'])) return false;
  const host = new URL(origin).hostname.replace(/^\[|\]$/g, '');
  return host === 'localhost' || isLoopback(host) || origin === ownOrigin;
}

function isLoopback(address: string): boolean {
  return cidrsContain(loopback, address);
}

/**
 * Returns the CORS fields of an answer (Fetch standard §3.2): pages of the allowed origins may call
 * the operations that running pages use, and no others. Preflights get the same fields.
 */
function corsFields(
  operation: Operation | undefined,
  corsOrigins: readonly string[],
  fields: Fields,
): FieldList {
  if (operation?.scope !== 'render' && operation?.forPages !== true) return [];
  const origin = fields.origin ?? '';
  const any = corsOrigins.includes('*');
  // Requests without Origin get the field as well, so that caches store one answer for all.
  if (!any && !corsOrigins.includes(origin)) return ['Vary', 'Origin'];
  return [
    'Access-Control-Allow-Origin',
    any ? '*' : origin,
    ...(any ? [] : ['Vary', 'Origin']),
    'Access-Control-Expose-Headers',
    'ETag',
    ...(fields['access-control-request-method'] === undefined
      ? []
      : [
          'Access-Control-Allow-Methods',
          'GET, POST',
          'Access-Control-Allow-Headers',
          'apikey, authorization, content-type, if-none-match',
          'Access-Control-Max-Age',
          '86400',
        ]),
  ];
}
