import type { SharedLimits } from '../fair/shared-limits.ts';
import { withoutOwnCookies } from '../http/own-cookies.ts';
import { type Recipient, type Reply, changedReply, discard, noBody } from '../http/reply.ts';
import { prefersHtml } from '../http/representation/negotiation.ts';
import { hasTooManyRanges } from '../http/representation/ranges.ts';
import type { RequestTarget } from '../http/request.ts';
import { answerService } from '../operations/http/service.ts';
import { contentBegun } from '../server/send-content.ts';
import type { Failure } from '../values/failure.ts';
import { type Caller, hasScope } from '../values/key.ts';
import type { ClientAddress } from '../values/network/peer.ts';
import { whenReady } from '../values/when-ready.ts';
import { passContentOn } from './body.ts';
import { type Exchange, type Sent, sentAccept } from './exchange.ts';
import { type FailureLogs, contentFailure, errorPage, loggedFailure } from './failures.ts';
import {
  type IncomingRequest,
  acceptRequest,
  callerOf,
  hasKey,
  trailersOf,
} from './incoming-request.ts';
import type { SentRequest, StepRequest } from './pipeline.ts';
import type { Moment } from './serving.ts';
import type { ReplyOrPromise } from './source.ts';

/** The surroundings of an answer. */
export interface ResponderParts extends FailureLogs {
  readonly shared: SharedLimits;
  /** See Recipient. */
  readonly sourceAnswered?: Recipient['sourceAnswered'];
}

/**
 * Opens another protocol on the connection of a request. Resolves to a reply with the status 101
 * once it is open, or to the reply of a source that refuses it; rejects with any other refusal.
 */
export type OpenProtocol = (
  request: StepRequest,
) => Promise<{ readonly reply: Reply; readonly caller?: Caller | undefined }>;

type Responses = SentRequest['answers'];

/** Answers one request under the configuration that was current when it arrived. */
export class Responder implements Responses {
  readonly #parts: ResponderParts;
  readonly #moment: Moment;
  readonly #exchange: Exchange;
  readonly #known: RequestTarget | undefined;
  readonly #open: OpenProtocol | undefined;
  #incoming: IncomingRequest | undefined;
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
  async reply(): Promise<Reply> {
    const exchange = this.#exchange;
    const { serving } = this.#moment;
    let incoming: IncomingRequest;
    try {
      if (exchange.failure !== undefined) throw exchange.failure;
      incoming = acceptRequest(serving, exchange, this.#known);
    } catch (thrown) {
      const { failure, id } = loggedFailure(this.#parts, thrown, this.address);
      // Where the next request starts is uncertain behind a head with two possible readings.
      exchange.shouldKeepAlive = false;
      return contentFailure(failure, id, sentAccept(exchange.head));
    }
    this.#incoming = incoming;
    this.address = incoming.address;
    const { range } = incoming.fields;
    if (range !== undefined && hasTooManyRanges(range)) {
      this.#parts.limits.passed('ranges', this.address);
    }
    return serving.site.answer(this.#request(incoming));
  }

  #request(incoming: IncomingRequest): StepRequest & { readonly sent: SentRequest } {
    const exchange = this.#exchange;
    const { body } = exchange;
    const { serving } = this.#moment;
    return {
      ...incoming.target,
      method: exchange.head.method,
      version: exchange.head.version,
      fields: withoutOwnCookies(incoming.fields),
      address: incoming.address,
      visitor: serving.visitors.visitorOf(incoming),
      body,
      trailers: body === undefined ? undefined : () => trailersOf(serving, body.rawTrailers),
      signal: exchange.signal,
      sourceAnswered: this.#parts.sourceAnswered,
      interim: (status, fields) => {
        exchange.interim(status, fields);
      },
      sent: { incoming, exchange, answers: this },
    };
  }

  /** As SentRequest.answers. */
  content(request: StepRequest, next: (request: StepRequest) => ReplyOrPromise): ReplyOrPromise {
    const { body } = this.#exchange;
    if (this.#open !== undefined) return this.#opened(this.#open, request);
    if (body !== undefined) passContentOn(body);
    return whenReady(next(request), (reply) => reply && this.#begun(reply, request));
  }

  /** A reply of the site whose content has begun, if another server sends it. */
  #begun(reply: Reply, request: StepRequest): Reply | Promise<Reply> {
    const { body } = reply;
    const timed = (): Reply => {
      const shown = this.#withServerTiming(reply, request);
      this.#hold(shown, this.caller);
      return shown;
    };
    return body.kind === 'stream' ? contentBegun(body.stream).then(timed) : timed();
  }

  /** As SentRequest.answers. */
  async failed(thrown: unknown, request: StepRequest): Promise<Reply> {
    const { failure, id } = loggedFailure(this.#parts, thrown, this.address);
    // A connection for another host, or with a check by former authorities, is of no use.
    if (failure.limit === 'open_files' || failure.status === misdirected) {
      this.#exchange.shouldKeepAlive = false;
    }
    const fields = request.sent?.incoming.fields ?? request.fields;
    const reply = contentFailure(failure, id, fields.accept);
    const { site } = this.#moment.serving;
    const own = prefersHtml(fields.accept)
      ? await errorPage(site, reply, { ...request, fields })
      : undefined;
    const shown = own ?? { ...reply, isReusable: true };
    return this.#withServerTiming(this.#reusedFor(failure, shown), request);
  }

  /**
   * Sends the answer (without content, to a HEAD), and ends the connection if the content of the
   * request was not read.
   */
  async send(reply: Reply): Promise<Sent> {
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

  async #opened(open: OpenProtocol, request: StepRequest): Promise<Reply> {
    const { reply, caller } = await open(request);
    this.caller = caller;
    return this.#begun(reply, request);
  }

  /** The reply to a failure, reusable if the failure is; a debug log has a line for each one. */
  #reusedFor({ isReusable, admits }: Failure, shown: Reply): Reply {
    const { isReusable: isShownAgain, ...reply } = shown;
    const isLogged = /^(?:trace|debug)$/.test(this.#moment.serving.config.log.level);
    if (isReusable !== true || isShownAgain !== true || isLogged) return reply;
    return { ...reply, isReusable, admits };
  }

  /** As SentRequest.answers. */
  async service(path: string, request: StepRequest): Promise<Reply> {
    const exchange = this.#exchange;
    if (this.#open !== undefined) return this.#opened(this.#open, request);
    const { incoming } = request.sent ?? this;
    if (incoming === undefined) throw new TypeError('no client has sent the request');
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
  #withServerTiming(reply: Reply, { sent }: StepRequest): Reply {
    const { serving } = this.#moment;
    // A wrong key counts as wrong, but the visitor still gets the page.
    if (sent && hasKey(sent.incoming)) this.caller = callerOf(serving, sent.incoming);
    const wanted = serving.config.log.explain;
    if (!wanted && !seesSources(this.caller)) return reply;
    return changedReply(reply, (one) => {
      return { ...one, fields: [...one.fields, 'Server-Timing', `waymark;desc="${one.source}"`] };
    });
  }
}

/** Misdirected Request (RFC 9110 §15.5.20). */
const misdirected = 421;

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
