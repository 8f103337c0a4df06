import { consoleOriginReply, withoutConsoleWorker } from '../../modules/console/console.ts';
import { previewToken } from '../../modules/drafts/draft.ts';
import { isOfLivePage, previewReply } from '../../modules/drafts/preview-answer.ts';
import type { ResponseHeaders } from '../../modules/headers/response-headers.ts';
import type { SignedInWatch } from '../../modules/login/signed-in-watch.ts';
import type { SharedLimits } from '../fair/shared-limits.ts';
import { withoutOwnCookies } from '../http/own-cookies.ts';
import { type Recipient, type Reply, changedReply, discard, noBody } from '../http/reply.ts';
import { prefersHtml } from '../http/representation/negotiation.ts';
import { hasTooManyRanges } from '../http/representation/ranges.ts';
import type { RequestTarget } from '../http/request.ts';
import { respelledReply } from '../http/respelled.ts';
import { answerService } from '../operations/http/service.ts';
import { contentBegun } from '../server/send-content.ts';
import type { Failure } from '../values/failure.ts';
import { type Caller, hasScope } from '../values/key.ts';
import type { ClientAddress } from '../values/network/peer.ts';
import { servicePath } from '../values/path.ts';
import { passContentOn } from './body.ts';
import { type Arrived, type Exchange, type Sent, sentAccept } from './exchange.ts';
import { type FailureLogs, contentFailure, errorPage, loggedFailure } from './failures.ts';
import {
  type IncomingRequest,
  acceptRequest,
  callerOf,
  countForRates,
  hasKey,
  trailersOf,
} from './incoming-request.ts';
import type { Moment, Serving } from './serving.ts';

/** The surroundings of an answer. */
export interface ResponderParts extends FailureLogs {
  /**
   * The reply that comes before all others, if there is one: the answer to a challenge of an ACME
   * server, or a redirect from http to https.
   */
  readonly earlyReply: (
    serving: Serving,
    incoming: IncomingRequest,
    asked: Arrived,
  ) => Reply | undefined | Promise<Reply | undefined>;
  readonly shared: SharedLimits;
  readonly signedIn: Pick<SignedInWatch, 'watch'>;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** See Recipient. */
  readonly sourceAnswered?: Recipient['sourceAnswered'];
}

/**
 * Opens another protocol on the connection of a request. Resolves to a reply with the status 101
 * once it is open, or to the reply of a source that refuses it; rejects with any other refusal.
 */
export type OpenProtocol = (
  incoming: IncomingRequest,
) => Promise<{ readonly reply: Reply; readonly caller?: Caller | undefined }>;

/** Answers one request under the configuration that was current when it arrived. */
export class Responder {
  readonly #parts: ResponderParts;
  readonly #moment: Moment;
  readonly #exchange: Exchange;
  readonly #known: RequestTarget | undefined;
  readonly #open: OpenProtocol | undefined;
  #incoming: IncomingRequest | undefined;
  #unwatch: (() => void) | undefined;
  /** Of the client, as far as it is known. */
  address: ClientAddress;
  caller: Caller | undefined;

  /**
   * `known`: the target of the request, if it has been read already; `open`: undefined for an
   * ordinary request.
   */
  constructor(
    parts: ResponderParts,
    moment: Moment,
    exchange: Exchange,
    {
      known,
      open,
    }: {
      readonly known?: RequestTarget | undefined;
      readonly open?: OpenProtocol | undefined;
    } = {},
  ) {
    this.#known = known;
    this.#open = open;
    this.#parts = parts;
    this.#moment = moment;
    this.#exchange = exchange;
    this.address = exchange.peer.address;
  }

  /** The request, once it is validated. */
  get incoming(): IncomingRequest | undefined {
    return this.#incoming;
  }

  /** Makes the answer. It never rejects: a failure is an answer as well. */
  reply(): Promise<Reply> {
    const { responseHeaders } = this.#moment.serving;
    return responseHeaders === undefined ? this.#reply() : this.#changedReply(responseHeaders);
  }

  /** The answer with the fields of the ini file, unless it is one of Waymark's own paths. */
  async #changedReply(change: ResponseHeaders): Promise<Reply> {
    const { config, visitors, site } = this.#moment.serving;
    const reply = await this.#reply();
    const incoming = this.#incoming;
    if (incoming === undefined || reply.status === switchingProtocols) return reply;
    const { target, fields, address } = incoming;
    if (servicePath(target.path, config.server.base) !== undefined) return reply;
    const { method } = this.#exchange.head;
    const visitor = visitors.visitorOf(incoming);
    const request = { ...target, method, fields, address, visitor };
    const changed = await change(reply, request);
    const { signal } = this.#exchange;
    return (await site.limited({ ...request, body: undefined, signal }, changed)) ?? changed;
  }

  async #reply(): Promise<Reply> {
    const exchange = this.#exchange;
    const { head } = exchange;
    const { serving } = this.#moment;
    let incoming: IncomingRequest | undefined;
    try {
      if (exchange.failure !== undefined) throw exchange.failure;
      incoming = acceptRequest(serving, exchange, this.#known);
      this.#incoming = incoming;
      this.address = incoming.address;
      if (incoming.isUnencoded) return respelledReply(incoming.target, 'none');
      const early = this.#parts.earlyReply(serving, incoming, exchange);
      const elsewhere = early instanceof Promise ? await early : early;
      if (elsewhere !== undefined) return elsewhere;
      const counted = countForRates(serving, incoming);
      if (counted !== undefined) await counted;
      const { range } = incoming.fields;
      if (range !== undefined && hasTooManyRanges(range)) {
        this.#parts.limits.passed('ranges', this.address);
      }
      const path = servicePath(incoming.target.path, serving.config.server.base);
      const open = this.#open;
      if (path !== undefined && open === undefined) return await this.#service(path, incoming);
      if (path === undefined) {
        const toConsole = consoleOriginReply(serving.config, incoming.target, head.method);
        if (toConsole !== undefined) return toConsole;
      }
      const reply = await (open === undefined
        ? this.#content(incoming)
        : this.#opened(open, incoming));
      if (reply.body.kind === 'stream') await contentBegun(reply.body.stream);
      const timed = this.#withServerTiming(reply, incoming);
      this.#hold(timed, this.caller);
      return timed;
    } catch (thrown) {
      const { failure, id } = loggedFailure(this.#parts, thrown, this.address);
      // Where the next request starts is uncertain behind a head with two possible readings.
      // A connection for another host, or with a check by former authorities, is of no use.
      const isMisdirected = failure.status === misdirected;
      if (incoming === undefined || failure.limit === 'open_files' || isMisdirected) {
        exchange.shouldKeepAlive = false;
      }
      const accept = incoming === undefined ? sentAccept(head) : incoming.fields.accept;
      const reply = contentFailure(failure, id, accept);
      if (incoming === undefined) return reply;
      const isForPerson = prefersHtml(accept);
      const own = isForPerson ? await this.#errorPage(reply, incoming) : undefined;
      const shown = own ?? { ...reply, isReusable: true };
      return this.#withServerTiming(this.#reusedFor(failure, shown), incoming);
    }
  }

  /**
   * Sends the answer (without content, to a HEAD), and ends the connection if the content of the
   * request was not read.
   */
  async send(reply: Reply): Promise<Sent> {
    try {
      return await this.#send(reply);
    } finally {
      this.#unwatch?.();
    }
  }

  async #send(reply: Reply): Promise<Sent> {
    const exchange = this.#exchange;
    if (exchange.isOver) {
      await discard(reply);
      return { bytes: 0, cut: true };
    }
    exchange.leaveUnread(() => {
      this.#parts.limits.passed('unread_content', this.address);
    });
    const isHead = exchange.head.method === 'HEAD' && reply.body.kind !== 'none';
    if (isHead) await discard(reply);
    try {
      return await exchange.respond(isHead ? { ...reply, body: noBody } : reply, this.address);
    } catch (error) {
      await discard(reply);
      throw error;
    }
  }

  async #opened(open: OpenProtocol, incoming: IncomingRequest): Promise<Reply> {
    const { reply, caller } = await open(incoming);
    this.caller = caller;
    return reply;
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
    const exchange = this.#exchange;
    const { body } = exchange;
    const recipient: Recipient = {
      signal: exchange.signal,
      sourceAnswered: this.#parts.sourceAnswered,
      interim: (status, fields) => {
        exchange.interim(status, fields);
      },
    };
    const { serving, nowMs } = this.#moment;
    const { site, visitors, config } = serving;
    // A browser keeps a worker when the preview has ended.
    const isWorker = incoming.fields['service-worker'] === 'script';
    const token = isWorker ? undefined : previewToken(incoming.fields.cookie);
    const preview = token === undefined ? undefined : serving.previews.find(token, nowMs);
    if (body !== undefined) passContentOn(body);
    const visitor = visitors.visitorOf(incoming);
    const end = (): void => {
      exchange.destroy();
    };
    this.#unwatch = this.#parts.signedIn.watch({ incoming, visitor, end });
    const request = {
      ...incoming.target,
      ...recipient,
      method: exchange.head.method,
      version: exchange.head.version,
      fields: withoutOwnCookies(incoming.fields),
      address: incoming.address,
      visitor,
      body,
      trailers: body === undefined ? undefined : () => trailersOf(serving, body.rawTrailers),
    };
    if (preview === undefined || isOfLivePage(preview, incoming.fields)) {
      return site.respond(request);
    }
    return previewReply(preview, request, `${config.server.base}/svc1/preview/end`);
  }

  #errorPage(reply: Reply, incoming: IncomingRequest): Promise<Reply | undefined> {
    const { site, visitors } = this.#moment.serving;
    const visitor = visitors.visitorOf(incoming);
    return errorPage(site, reply, { ...incoming.target, ...incoming, visitor });
  }

  /** The reply to a failure, reusable if the failure is; a debug log has a line for each one. */
  #reusedFor({ isReusable, admits }: Failure, shown: Reply): Reply {
    const { isReusable: isShownAgain, ...reply } = shown;
    const isLogged = /^(?:trace|debug)$/.test(this.#moment.serving.config.log.level);
    if (isReusable !== true || isShownAgain !== true || isLogged) return reply;
    return { ...reply, isReusable, admits };
  }

  async #service(path: string, incoming: IncomingRequest): Promise<Reply> {
    const exchange = this.#exchange;
    let signal: AbortSignal | undefined;
    const { reply, caller } = await answerService(this.#moment.serving, {
      path,
      exchange,
      incoming,
      nowMs: this.#moment.nowMs,
      fail: (thrown) => loggedFailure(this.#parts, thrown, this.address),
      requests: this.#parts.shared.requests,
      hold: (...given) => {
        this.#hold(...given);
      },
      // Not an accessor: V8 gives each object with an accessor a hidden class of its own.
      signal: () => (signal ??= answerSignal(exchange)),
    });
    this.caller = caller;
    return reply;
  }

  /** Counts content as unread until the client has the answer; throws if that is too much. */
  #hold({ body }: Reply, caller: Caller | undefined): void {
    const exchange = this.#exchange;
    if (body.kind !== 'bytes' || exchange.head.method === 'HEAD' || exchange.isOver) return;
    const holder = { keyId: caller?.keyId, address: this.address };
    const free = this.#parts.shared.unread.hold(holder, [body.bytes]);
    exchange.onClose(free);
  }

  /**
   * Adds the source of the answer, for callers with the scope read whose key has no bounds, or if
   * `[log] explain` is on (docs/design/requests.md#precedence).
   */
  #withServerTiming(reply: Reply, incoming: IncomingRequest): Reply {
    const { serving } = this.#moment;
    // A wrong key counts as wrong, but the visitor still gets the page.
    if (hasKey(incoming)) this.caller = callerOf(serving, incoming);
    const wanted = serving.config.log.explain;
    if (!wanted && !seesSources(this.caller)) return reply;
    return changedReply(reply, (one) => {
      return { ...one, fields: [...one.fields, 'Server-Timing', `waymark;desc="${one.source}"`] };
    });
  }
}

/** Misdirected Request (RFC 9110 §15.5.20). */
const misdirected = 421;

/** The status of an opened protocol (RFC 9110 §15.2.2), whose head is sent already. */
const switchingProtocols = 101;

/** Returns a signal that aborts if the connection of an answer closes before the end. */
function answerSignal(exchange: Exchange): AbortSignal {
  const controller = new AbortController();
  exchange.onClose(() => {
    // After the end there are no listeners, and an abort reason with its stack costs time.
    if (!exchange.isSent) controller.abort();
  });
  return controller.signal;
}

function seesSources(caller: Caller | undefined): boolean {
  return caller !== undefined && caller.bounds === undefined && hasScope(caller, 'read');
}
