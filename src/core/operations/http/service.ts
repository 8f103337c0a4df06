import { isConsoleOrigin, refuseServiceWorker } from '../../../modules/console/console.ts';
import {
  type FieldList,
  type Reply,
  replyField,
  withVary,
  withoutFields,
} from '../../http/reply.ts';
import { prefersHtml } from '../../http/representation/negotiation.ts';
import type { Fields } from '../../http/request.ts';
import type { Exchange } from '../../pipeline/exchange.ts';
import { contentFailure, errorPage, operationFailure } from '../../pipeline/failures.ts';
import { type IncomingRequest, authenticateRequest } from '../../pipeline/incoming-request.ts';
import type { Serving } from '../../pipeline/serving.ts';
import { metricsType } from '../../report/metrics.ts';
import { contentBegun } from '../../server/send-content.ts';
import { Failure } from '../../values/failure.ts';
import type { Caller } from '../../values/key.ts';
import { cidrsContain, parseCidr } from '../../values/network/cidr.ts';
import type { Operation } from '../operation.ts';
import { answerOperation, linkName, operationName } from './operations.ts';
import { type ServicePath, type ServiceRequest, methodReply } from './service-path.ts';

/**
 * Answers requests for Waymark's own paths: health, engine files, operations. Never rejects; the
 * caller is undefined if no key was checked.
 */
export async function answerService(
  serving: Serving,
  request: Omit<ServiceRequest, 'identify'>,
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
    if (operation === undefined) {
      const identify = (): Caller => (caller = authenticateRequest(serving, incoming));
      const asked = { ...request, identify };
      // Serving cannot name their type: a request is accepted by a Serving.
      const paths = serving.paths as ReadonlyMap<string, ServicePath>;
      const answer = paths.get(firstSegment(path)) ?? ownPaths.get(path) ?? paths.get('*');
      const reply = answer?.(serving, asked);
      if (reply !== undefined) return { reply: await reply, caller };
    }
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
      : operationFailure(serving, r, failure, id);
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

function notReusable({ isReusable: _reusable, ...reply }: Reply): Reply {
  return reply;
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

const healthPath: ServicePath = (_serving, { exchange }) => methodReply(exchange) ?? healthReply;

const websocketPath: ServicePath = (_serving, { exchange }) => {
  const told = methodReply(exchange);
  if (told !== undefined) return told;
  throw new Failure('invalid', 'This is the address of the websocket: ask for an upgrade.');
};

const metricsPath: ServicePath = (serving, { exchange, incoming, identify }) => {
  const told = methodReply(exchange);
  if (told !== undefined) return told;
  if (!isFromLoopback(exchange, incoming, serving.config.server.publicUrl)) {
    serving.execute.admit({ name: 'svc1/metrics', scope: 'read' }, identify());
  }
  return serving.metricsText().then((text) => plainReply(metricsType, text));
};

const ownPaths: ReadonlyMap<string, ServicePath> = new Map([
  ['/health', healthPath],
  ['/ws', websocketPath],
  ['/metrics', metricsPath],
]);

/** The segment of a path that says which module answers: `docs` of `/docs/index.html`. */
function firstSegment(path: string): string {
  const end = path.indexOf('/', 1);
  return path.slice(1, end === -1 ? undefined : end);
}

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
  const { origin } = fields;
  const any = corsOrigins.includes('*');
  // A request without Origin may be that of a frame, whose answer is for the visitor alone. Unless
  // it lacks the field, a browser gives it from its cache to any page that calls the operation.
  if (origin === undefined || !(any || corsOrigins.includes(origin))) return ['Vary', 'Origin'];
  return [
    'Access-Control-Allow-Origin',
    any ? '*' : origin,
    ...['Vary', 'Origin'],
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
