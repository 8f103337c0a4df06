import { Readable } from 'node:stream';
import { plainPage } from '../../core/http/content/page.ts';
import {
  type Body,
  type FieldList,
  type Recipient,
  type Reply,
  isEmptyStatus,
  noBody,
  replyField,
  withoutFields,
} from '../../core/http/reply.ts';
import type { ContentRequest } from '../../core/http/request.ts';
import { needsUser } from '../../core/http/visitor.ts';
import type { SourceResponse } from '../../core/outbound/exchange.ts';
import type { ExpectedReply, PageRequest, SwitchedProtocol } from '../../core/pipeline/source.ts';
import { Failure } from '../../core/values/failure.ts';
import { Balancer } from './balancer.ts';
import {
  type FetchPlan,
  type FetchRule,
  allowedMethods,
  fetchPlan,
  forwardsMethod,
  upgradeOf,
} from './fetch-plan.ts';
import type { HealthChecks } from './health-checks.ts';
import { Mirror } from './mirror.ts';
import { acceptsTrailers, isLoop, viaName } from './request-fields.ts';
import { trailerFields } from './response-fields.ts';
import type { SourceHealth } from './source-health.ts';
import {
  type FetchedResponse,
  type SourceRequestParts,
  requireTargets,
  sendToSource,
} from './source-request.ts';

/** Fetches content from other servers (docs/design/fetching.md#sources). */
export interface Fetcher {
  /**
   * Streams the answer of the rule's source. Rejects with `method_not_allowed`, `too_large` (the
   * request's content), `not_found` (a path that would leave the source), `rate_limited`,
   * `bad_gateway` or `gateway_timeout`. The reply's content fails if the source breaks off.
   * Destroying it, or aborting the request, aborts the fetch.
   */
  respond(rule: FetchRule, request: ContentRequest): Promise<Reply>;
  /**
   * Asks the source for the protocols in the request's Upgrade (RFC 9110 §7.8); resolves to the
   * switched connection, or to another answer. Rejects as respond does, and with `not_found` if the
   * rule passes no such request on.
   */
  upgrade(rule: FetchRule, request: ContentRequest): Promise<SwitchedProtocol | Reply>;
  /**
   * Explains respond without sending anything to the source. Throws as respond rejects before it
   * sends, except for loops and the request's content.
   */
  explain(rule: FetchRule, asked: PageRequest): ExpectedReply;
}

/** Creates a fetcher. */
export function createFetcher(
  given: Omit<SourceRequestParts, 'balancer' | 'mirror'> & {
    readonly checks: Pick<HealthChecks, 'watch'>;
  },
): Fetcher {
  const { health, checks, via } = given;
  const parts = {
    ...given,
    balancer: new Balancer(health),
    mirror: new Mirror(given),
  };
  return {
    async respond(rule, request) {
      const plan = requireMethod(fetchPlan(rule), rule, request.method);
      if (plan.health !== undefined) checks.watch(rule);
      if (isLoop(request.fields.via, viaName(via, plan.id))) return loopReply(plan);
      return replyToClient(await sendToSource(parts, plan, request), plan, request);
    },
    async upgrade(rule, request) {
      const plan = fetchPlan(rule);
      const asked = upgradeOf(rule, request);
      if (asked === undefined) throw new Failure('not_found', 'There is no websocket here.');
      if (isLoop(request.fields.via, viaName(via, plan.id))) return loopReply(plan);
      const fetched = await sendToSource(parts, plan, request, asked);
      const { answer, ownFields = [] } = fetched;
      const { connection } = answer;
      if (connection === undefined) return replyToClient(fetched, plan, request);
      const protocol = replyField(answer, 'upgrade') ?? '';
      if (!isAmong(protocol, asked)) {
        answer.discard();
        throw new Failure(
          'bad_gateway',
          'The source switched to a protocol that the request does not name.',
        );
      }
      // A 101 has no content (RFC 9110 §8.6). In HTTP/2, the bytes of a tunnel are content.
      const fields = [...withoutFields(fetched.fields, 'content-length'), ...ownFields];
      return { protocol, fields, connection, source: plan.name };
    },
    explain(rule, asked) {
      const plan = requireMethod(fetchPlan(rule), rule, asked.method);
      requireTargets(plan, asked);
      const servers = parts.names.knownServersOf(plan).map(({ server }) => server);
      const notes = [
        ...setAsideNotes(servers, health),
        ...checkNotes(plan, servers, health),
        ...(plan.mirror ? [`A copy of the request goes to ${plan.mirror.server}.`] : []),
      ];
      return { status: null, notes: [sourceStatusNote(rule), ...notes] };
    },
  };
}

/** Whether a rule that has a usable source passes a request for another protocol on. */
export function passesUpgrade(
  rule: FetchRule,
  request: Pick<ContentRequest, 'method' | 'fields'>,
): boolean {
  try {
    return upgradeOf(rule, request) !== undefined;
  } catch {
    // The rule has no usable source.
    return false;
  }
}

/** Whether a source has switched to protocols that a request names. */
function isAmong(switched: string, asked: string): boolean {
  const names = listOf(switched);
  const all = new Set(listOf(asked));
  return names.length > 0 && names.every((name) => all.has(name));
}

function listOf(field: string): readonly string[] {
  const names = field.split(',').map((name) => name.trim().toLowerCase());
  return names.filter((name) => name !== '');
}

function sourceStatusNote({ httpresponse }: FetchRule): string {
  const replaced = httpresponse === undefined ? '' : `; ${httpresponse} replaces its 200`;
  return `The source decides the status; explain sends it no request${replaced}.`;
}

/** The plan, if it allows the method; throws `method_not_allowed` if not. */
function requireMethod(plan: FetchPlan, rule: FetchRule, method: string): FetchPlan {
  if (forwardsMethod(rule, method)) return plan;
  throw new Failure('method_not_allowed', 'This page does not allow this method.', {
    allow: allowedMethods(rule),
  });
}

/** One sentence for each of several sources that is set aside now. */
function setAsideNotes(servers: readonly string[], health: SourceHealth): readonly string[] {
  if (servers.length === 1) return [];
  return health.setAside(servers).map(({ origin, leftMs }) => {
    const again =
      leftMs === undefined ? 'now' : `in ${Math.ceil(leftMs / 1000)} s, or as a last resort`;
    return `${origin} has failed and is set aside; it is tried again ${again}.`;
  });
}

/** One sentence for each source whose health check fails. */
function checkNotes(
  { health: check }: FetchPlan,
  servers: readonly string[],
  health: SourceHealth,
): readonly string[] {
  if (check === undefined) return [];
  return servers.flatMap((server) => {
    const problem = health.checkProblem(server, check.path);
    if (problem === undefined) return [];
    const instead = servers.length === 1 ? '' : '; other sources come first';
    return [`${server} fails its health check ${check.path}: ${problem}${instead}.`];
  });
}

/** A source that failed to answer. */
interface FetchFailure {
  readonly code: 'bad_gateway' | 'gateway_timeout';
  readonly message: string;
  /** The id of the page rule that names the source, or `proxy:<name>`. */
  readonly id: string;
}

/** Reports each failure of a source; a client that goes away is none. */
export function withFailureEvents(
  fetch: Fetcher,
  report: (failure: FetchFailure) => void,
): Fetcher {
  const failing =
    ({ id }: FetchRule, { signal }: Recipient) =>
    (error: unknown): never => {
      if (error instanceof Failure && !signal.aborted) {
        const { code, message } = error;
        const isSource = code === 'bad_gateway' || code === 'gateway_timeout';
        if (isSource) report({ code, message, id });
      }
      throw error;
    };
  return {
    ...fetch,
    respond: (rule, request) => fetch.respond(rule, request).catch(failing(rule, request)),
    upgrade: (rule, request) => fetch.upgrade(rule, request).catch(failing(rule, request)),
  };
}

/** Prepares the visitor of each request whose fields for the source name its user. */
export function withUsers(fetch: Fetcher): Fetcher {
  // Others go on at once: the content of a request must not break before anyone reads it.
  const preparing = (rule: FetchRule, { visitor }: ContentRequest): Promise<void> | undefined =>
    fetchPlan(rule).needsUser ? visitor.prepare(needsUser) : undefined;
  return {
    ...fetch,
    respond: (rule, request) =>
      preparing(rule, request)?.then(() => fetch.respond(rule, request)) ??
      fetch.respond(rule, request),
    upgrade: (rule, request) =>
      preparing(rule, request)?.then(() => fetch.upgrade(rule, request)) ??
      fetch.upgrade(rule, request),
  };
}

/**
 * Adds the fields that are for one client only, such as the cookie of its source, in front of the
 * cache.
 */
export function withOwnFields(fetch: Fetcher): Fetcher {
  return {
    ...fetch,
    respond(rule, request) {
      const replied = fetch.respond(rule, request);
      return fetchPlan(rule).balance === 'cookie' ? replied.then(addOwnFields) : replied;
    },
  };
}

function addOwnFields(reply: Reply): Reply {
  const { ownFields } = reply;
  return ownFields === undefined ? reply : { ...reply, fields: [...reply.fields, ...ownFields] };
}

/** Makes the reply to the client from a source's response. */
function replyToClient(fetched: FetchedResponse, plan: FetchPlan, request: ContentRequest): Reply {
  const { answer, fields, ownFields } = fetched;
  const status = answer.status === 200 ? (plan.httpresponse ?? 200) : answer.status;
  const made = { status, source: plan.name, ...(ownFields && { ownFields }) };
  if (request.method === 'HEAD' || isEmptyStatus(status)) {
    answer.discard();
    // RFC 9110 §8.6: a 204 has no Content-Length; that of a 304 or to a HEAD is the length a GET
    // would have had.
    const kept =
      status === 204 || status === 205 ? withoutFields(fields, 'content-length') : fields;
    return { ...made, fields: kept, body: noBody };
  }
  const length = replyField({ fields }, 'content-length');
  const takesTrailers = length === undefined && acceptsTrailers(request);
  const body = takesTrailers ? bodyWithTrailers(answer) : bodyFrom(answer, length);
  if (body.kind !== 'bytes' || length !== undefined) return { ...made, fields, body };
  // gRPC takes fields without content and without an end after them for incomplete.
  if (body.bytes.length === 0) {
    return { ...made, fields: [...fields, 'Content-Length', '0'], body: noBody };
  }
  const measured = [...fields, 'Content-Length', String(body.bytes.length)];
  return { ...made, fields: measured, body };
}

function bodyFrom(answer: SourceResponse, contentLength: string | undefined): Body {
  const content = answer.content();
  if (Buffer.isBuffer(content)) return { kind: 'bytes', bytes: content };
  const bytesLength = contentLength === undefined ? undefined : Number(contentLength);
  return { kind: 'stream', stream: content, bytesLength };
}

/** Content without a known length, with the source's trailer fields. */
function bodyWithTrailers(answer: SourceResponse): Body {
  const content = answer.content();
  const trailers = (): FieldList => trailerFields(answer.trailers());
  if (Buffer.isBuffer(content) && trailers().length === 0) return { kind: 'bytes', bytes: content };
  const stream = Buffer.isBuffer(content) ? Readable.from([content]) : content;
  return { kind: 'stream', stream, bytesLength: undefined, trailers };
}

/** The reply to a request that comes back to the rule that sent it (508, after RFC 5842 §7.2). */
function loopReply({ name }: FetchPlan): Reply {
  const page = plainPage('508 Loop Detected', 'This page is fetched from itself.');
  const bytes = Buffer.from(page);
  return {
    status: 508,
    fields: [
      'Content-Type',
      'text/html; charset=utf-8',
      'Content-Length',
      String(bytes.length),
      'Cache-Control',
      'no-store',
    ],
    body: { kind: 'bytes', bytes },
    source: name,
  };
}
