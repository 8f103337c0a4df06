import type { ServerResponse } from 'node:http';
import { limitFreshness } from '../http/limited-freshness.ts';
import { hasTooManyRanges } from '../http/ranges.ts';
import { prefersHtml } from '../http/negotiation.ts';
import { withoutOwnCookies } from '../http/own-cookies.ts';
import { respelledReply } from '../http/respelled.ts';
import type { ResponseHeaders } from '../http/response-headers.ts';
import {
  changedReply,
  discard,
  noBody,
  privateReply,
  replyField,
  withoutFields,
  type Recipient,
  type FieldList,
  type Reply,
} from '../http/reply.ts';
import { hasScope, type Caller } from '../model/key.ts';
import { servicePath } from '../model/path.ts';
import { previewToken } from '../model/preview.ts';
import { consoleOriginReply, withoutConsoleWorker } from './console.ts';
import { requireWhole } from '../http/broken-content.ts';
import { canDiscardBody, hasBody, passContentOn } from './h1/body.ts';
import { answerSignal, ClientGone } from './h1/client-gone.ts';
import { peerAddress } from './h1/connections.ts';
import {
  acceptRequest,
  callerOf,
  countForRates,
  type IncomingRequest,
} from './incoming-request.ts';
import type { RequestMessage, SendingResponse, Sent } from './http-message.ts';
import { previewReply } from './draft-preview.ts';
import { contentFailure, loggedFailure, type FailureLogs } from './failures.ts';
import { sendInterim } from './h1/node-http.ts';
import { linger } from './h1/refusal.ts';
import { contentBegun, send } from './send.ts';
import type { Moment, Serving } from './serving.ts';
import { answerService } from './service.ts';
import type { SharedLimits } from './shared-limits.ts';

/** The surroundings of an exchange. */
export interface ExchangeParts extends FailureLogs {
  /**
   * The reply that comes before all others, if there is one: the answer to a challenge of an ACME
   * server, or a redirect from http to https.
   */
  readonly earlyReply: (
    serving: Serving,
    incoming: IncomingRequest,
    message: RequestMessage,
  ) => Reply | undefined | Promise<Reply | undefined>;
  readonly shared: SharedLimits;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** See Recipient. */
  readonly sourceAnswered?: Recipient['sourceAnswered'];
}

/**
 * One request and its answer, under the configuration that was current when the request arrived.
 */
export class Exchange {
  readonly #parts: ExchangeParts;
  readonly #moment: Moment;
  readonly #message: RequestMessage;
  readonly #response: ServerResponse | SendingResponse;
  #incoming: IncomingRequest | undefined;
  address: string;
  caller: Caller | undefined;

  constructor(
    parts: ExchangeParts,
    moment: Moment,
    message: RequestMessage,
    response: ServerResponse | SendingResponse,
  ) {
    this.#parts = parts;
    this.#moment = moment;
    this.#message = message;
    this.#response = response;
    this.address = peerAddress(message.socket);
  }

  /** Makes the answer. It never rejects: a failure is an answer as well. */
  reply(): Promise<Reply> {
    const { responseHeaders, site } = this.#moment.serving;
    // Asked first: a rule may cease to answer while its answer is made.
    const hasChanges = site.hasComingChanges();
    const reply =
      responseHeaders === undefined ? this.#reply() : this.#changedReply(responseHeaders);
    return hasChanges ? reply.then((one) => this.#limitedReply(one)) : reply;
  }

  /** The answer, which caches may use until another page rule answers. */
  #limitedReply(reply: Reply): Reply {
    const { serving, nowMs } = this.#moment;
    const target = this.#incoming?.target;
    const endMs = target && serving.site.nextChangeMs(target, nowMs);
    if (endMs === undefined) return reply;
    return limitFreshness(reply, { endMs, nowMs: this.#parts.now() });
  }

  /** The answer with the fields of the ini file, unless it is one of Waymark's own paths. */
  async #changedReply(change: ResponseHeaders): Promise<Reply> {
    const { config, visitors } = this.#moment.serving;
    const reply = await this.#reply();
    const incoming = this.#incoming;
    if (incoming === undefined) return reply;
    const { target, fields, address } = incoming;
    if (servicePath(target.path, config.server.base) !== undefined) return reply;
    const method = this.#message.method ?? '';
    const visitor = visitors.visitorOf(incoming);
    const changed = await change(reply, { ...target, method, fields, address, visitor });
    return reply.isPrivate === true ? stillPrivate(changed, reply) : changed;
  }

  async #reply(): Promise<Reply> {
    const message = this.#message;
    const { serving } = this.#moment;
    let incoming: IncomingRequest | undefined;
    try {
      requireWhole(message);
      incoming = acceptRequest(serving, message);
      this.#incoming = incoming;
      this.address = incoming.address;
      if (incoming.isUnencoded) return respelledReply(incoming.target, 'none');
      const early = this.#parts.earlyReply(serving, incoming, message);
      const elsewhere = early instanceof Promise ? await early : early;
      if (elsewhere !== undefined) return elsewhere;
      const counted = countForRates(serving, incoming);
      if (counted !== undefined) await counted;
      const { range } = incoming.fields;
      if (range !== undefined && hasTooManyRanges(range)) {
        this.#parts.limits.passed('ranges', this.address);
      }
      const path = servicePath(incoming.target.path, serving.config.server.base);
      if (path !== undefined) return await this.#service(path, incoming);
      const toConsole = consoleOriginReply(serving.config, incoming.target, message.method);
      if (toConsole !== undefined) return toConsole;
      const reply = await this.#content(incoming);
      if (reply.body.kind === 'stream') await contentBegun(reply.body.stream);
      const timed = this.#withServerTiming(reply, incoming);
      this.#hold(timed, this.caller);
      return timed;
    } catch (thrown) {
      const { failure, id } = loggedFailure(this.#parts, thrown, this.address);
      // Where the next request starts is uncertain behind a head with two possible readings.
      if (incoming === undefined || failure.limit === 'open_files') {
        this.#response.shouldKeepAlive = false;
      }
      const accept = (incoming?.fields ?? message.headers).accept;
      const reply = contentFailure(failure, id, accept);
      if (incoming === undefined) return reply;
      const isForPerson = prefersHtml(accept);
      const own = isForPerson ? await this.#errorPage(reply, incoming) : undefined;
      return this.#withServerTiming(own ?? reply, incoming);
    }
  }

  /**
   * Sends the answer (without content, to a HEAD), and ends the connection if the content of the
   * request was not read.
   */
  async send(reply: Reply): Promise<Sent> {
    if (this.#response.destroyed) {
      await discard(reply);
      return { bytes: 0, cut: true };
    }
    this.#endUnread();
    const isHead = this.#message.method === 'HEAD' && reply.body.kind !== 'none';
    if (isHead) await discard(reply);
    try {
      return await send(this.#response, isHead ? { ...reply, body: noBody } : reply);
    } catch (error) {
      await discard(reply);
      throw error;
    }
  }

  /** Closes the connection after the response to a request whose content was not read. */
  #endUnread(): void {
    const message = this.#message;
    if (!hasBody(message) || message.readableEnded || canDiscardBody(message)) return;
    this.#response.shouldKeepAlive = false;
    const { socket } = message;
    // A session of HTTP/2 continues after each request.
    if (!('destroySoon' in socket)) return;
    // Node would close the connection at once, and its reset discards the answer (RFC 9112 §9.6).
    socket.destroySoon = () => {
      linger(socket, () => {
        this.#parts.limits.passed('unread_content', this.address);
      });
    };
  }

  /** Makes the reply of the site. Rejects for a service worker that could control the console. */
  async #content(incoming: IncomingRequest): Promise<Reply> {
    const reply = await this.#siteReply(incoming);
    try {
      return withoutConsoleWorker(this.#moment.serving.config, incoming, reply);
    } catch (refused) {
      await discard(reply);
      throw refused;
    }
  }

  #siteReply(incoming: IncomingRequest): Reply | Promise<Reply> {
    const message = this.#message;
    const recipient: Recipient = {
      signal: new ClientGone(this.#response, message.socket),
      sourceAnswered: this.#parts.sourceAnswered,
      interim: (status, fields) => {
        // HTTP/1.0 has no interim responses.
        if (message.httpVersion !== '1.0') this.#interim(status, fields);
      },
    };
    const { serving, nowMs } = this.#moment;
    const { site, visitors, config } = serving;
    const token = previewToken(incoming.fields.cookie);
    const preview = token === undefined ? undefined : serving.previews.find(token, nowMs);
    const body = hasBody(message) ? message : undefined;
    if (body !== undefined) passContentOn(body);
    const request = {
      ...incoming.target,
      ...recipient,
      method: message.method ?? '',
      fields: withoutOwnCookies(incoming.fields),
      address: incoming.address,
      visitor: visitors.visitorOf(incoming),
      body,
      trailers: body === undefined ? undefined : () => body.rawTrailers,
    };
    if (preview === undefined) return site.respond(request);
    return previewReply(preview, request, `${config.server.base}/svc1/preview/end`);
  }

  /** Makes the error page of the site for a failure, with the fields of the failure's own reply. */
  async #errorPage(reply: Reply, incoming: IncomingRequest): Promise<Reply | undefined> {
    const { site, visitors } = this.#moment.serving;
    const visitor = visitors.visitorOf(incoming);
    const failed = { ...incoming.target, ...incoming, visitor };
    const page = await site.errorPage(reply.status, failed);
    if (page === undefined) return undefined;
    const said = withoutFields(reply.fields, ...page.fields.map((name) => name.toLowerCase()));
    const fields = [...page.fields, ...withoutFields(said, 'content-length')];
    const { failureId, isPrivate } = reply;
    const source = reply.source.startsWith('access:') ? reply.source : page.source;
    return {
      ...page,
      fields,
      source,
      ...(failureId && { failureId }),
      ...(isPrivate && { isPrivate }),
    };
  }

  async #service(path: string, incoming: IncomingRequest): Promise<Reply> {
    const response = this.#response;
    let signal: AbortSignal | undefined;
    const { reply, caller } = await answerService(this.#moment.serving, {
      path,
      message: this.#message,
      incoming,
      nowMs: this.#moment.nowMs,
      fail: (thrown) => loggedFailure(this.#parts, thrown, this.address),
      requests: this.#parts.shared.requests,
      hold: (...given) => {
        this.#hold(...given);
      },
      // Not an accessor: V8 gives each object with an accessor a hidden class of its own.
      signal: () => (signal ??= answerSignal(response)),
    });
    this.caller = caller;
    return reply;
  }

  /** Counts content as unread until the client has the answer; throws if that is too much. */
  #hold({ body }: Reply, caller: Caller | undefined): void {
    const response = this.#response;
    if (body.kind !== 'bytes' || this.#message.method === 'HEAD' || response.destroyed) return;
    const holder = { keyId: caller?.keyId, address: this.address };
    const free = this.#parts.shared.unread.hold(holder, [body.bytes]);
    response.once('close', free);
  }

  #interim(status: number, fields: FieldList): void {
    const response = this.#response;
    if ('sendInterim' in response) response.sendInterim(status, fields);
    else sendInterim(response, status, fields);
  }

  /**
   * Adds the source of the answer, for callers with the scope read whose key has no bounds, or if
   * `[log] explain` is on (docs/design/requests.md#precedence).
   */
  #withServerTiming(reply: Reply, incoming: IncomingRequest): Reply {
    const { serving } = this.#moment;
    // A wrong key counts as wrong, but the visitor still gets the page.
    if (incoming.fields.apikey !== undefined) this.caller = callerOf(serving, incoming);
    const wanted = serving.config.log.explain;
    if (!wanted && !seesSources(this.caller)) return reply;
    return changedReply(reply, (one) => {
      return { ...one, fields: [...one.fields, 'Server-Timing', `waymark;desc="${one.source}"`] };
    });
  }
}

function seesSources(caller: Caller | undefined): boolean {
  return caller !== undefined && caller.bounds === undefined && hasScope(caller, 'read');
}

/** No field of the ini file lets a cache store what the reply before did not. */
function stillPrivate(changed: Reply, before: Reply): Reply {
  const said = replyField(before, 'cache-control') ?? '';
  const reply = privateReply(changed);
  if (!/no-store/i.test(said)) return reply;
  const fields = [...withoutFields(reply.fields, 'cache-control'), 'Cache-Control', said];
  return { ...reply, fields };
}
