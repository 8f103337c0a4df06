import type { Duplex } from 'node:stream';
import { splitHead } from '../http/reading/head.ts';
import { unencodedStatus } from '../http/reading/refusals.ts';
import type { Reply } from '../http/reply.ts';
import { respelledReply } from '../http/respelled.ts';
import { parseRequest } from '../http/reading/target.ts';
import type { Failure } from '../values/failure.ts';
import { runInSpan } from '../report/trace.ts';
import type { Arrival, Arrived, Exchange, PreparableExchange, Prepared } from './exchange.ts';
import { contentFailure, loggedFailure } from './failures.ts';
import { writeAndClose } from '../server/h1/refusal.ts';
import { schemeOf, type ClientAddress, type Peer } from '../values/network/peer.ts';
import { preparableRequest, type PreparableRequest } from './preparable-request.ts';
import { withOwnId, type PreparedReplies } from './prepared.ts';
import type { RequestLog, RequestStart } from './record/request-log.ts';
import { type OpenProtocol, Responder, type ResponderParts } from './responder.ts';
import type { Moment, Serving } from './serving.ts';
import { withHsts } from './https-redirect.ts';

/** The surroundings of the handler; `monotonicMs` measures durations. */
interface HandlerParts extends ResponderParts {
  readonly serving: () => Serving;
  readonly monotonicMs: () => number;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly requestLog: RequestLog;
  /** Whether the next response of each connection is its last. */
  readonly isLast: () => boolean;
}

/** The release function of answers without content to release. */
const releaseNothing = (): void => undefined;

/** Answers the requests of a port: with a prepared answer, or with a new one of the site or API. */
export class RequestHandler {
  readonly #parts: HandlerParts;
  /** The newest arrival of several requests, and the state of the site then. */
  #arrival: Arrival | undefined;
  #arrivalMoment: Moment | undefined;

  constructor(parts: HandlerParts) {
    this.#parts = parts;
  }

  /** Returns the time of arrival, and the state of the site then; begins the request's span. */
  start(asked?: Arrived): RequestStart {
    const arrival = asked?.arrival;
    const moment = arrival === undefined ? this.#moment() : this.#momentOf(arrival);
    const span = asked && this.#span(moment.serving, asked);
    return { startedMs: arrival?.atMs ?? this.#parts.monotonicMs(), moment, span };
  }

  #span({ tracer }: Serving, { head, peer }: Arrived): RequestStart['span'] {
    const given = { fields: head.fields, peerAddress: peer.address };
    return tracer?.continue(given, 'server', head.method, {});
  }

  /** The state of the site now, with everything that any process has acknowledged. */
  #moment(): Moment {
    const { serving: currentServing, now } = this.#parts;
    const serving = currentServing();
    serving.refresh();
    return { serving, period: serving.period(), nowMs: now() };
  }

  /** One state for all requests of an arrival: none of them can follow a later change. */
  #momentOf(arrival: Arrival): Moment {
    if (this.#arrivalMoment === undefined || this.#arrival !== arrival) {
      this.#arrival = arrival;
      this.#arrivalMoment = this.#moment();
    }
    return this.#arrivalMoment;
  }

  /** Answers a request. It throws nothing. */
  handle(exchange: PreparableExchange, prepared: PreparedReplies): void {
    const { isLast, requestLog } = this.#parts;
    const { head, peer } = exchange;
    if (isLast()) exchange.shouldKeepAlive = false;
    const start = this.start(exchange);
    const { nowMs } = start.moment;
    const isWhole = exchange.failure === undefined;
    const request = isWhole ? preparableRequest(head, schemeOf(peer)) : undefined;
    const { address } = peer;
    const known = request && this.#known(request, start, address, prepared);
    if (request === undefined || known === undefined) {
      this.#answer({ exchange, start, prepare: request && { request, prepared } });
      return;
    }
    const { answer, free } = known;
    if (free !== releaseNothing) exchange.onClose(free);
    exchange.respondPrepared(answer, nowMs);
    const { bytes } = answer;
    const { head: fields, target: place } = request;
    requestLog.record(exchange, start, answer, { address, bytes, fields, place });
  }

  /** Answers a request for another protocol, which `open` opens. It throws nothing. */
  handleUpgrade(exchange: Exchange, start: RequestStart, open: OpenProtocol): void {
    this.#answer({ exchange, start, open });
  }

  /**
   * The prepared answer to a request, and the function that releases its content. Undefined without
   * one, if too much is unread, or if no rate lets it pass.
   */
  #known(
    request: PreparableRequest,
    { moment }: RequestStart,
    address: ClientAddress,
    prepared: PreparedReplies,
  ): { readonly answer: Prepared; readonly free: () => void } | undefined {
    const known = prepared.find(request, moment, address);
    const free = known && this.#hold(known, address);
    if (known === undefined || free === undefined) return undefined;
    const { rates } = moment.serving;
    // Last: where this answer cannot be held, the new one is what counts.
    if (rates === undefined || rates.countPlain({ ...request.target, address })) {
      return { answer: withOwnId(known, this.#parts.newId), free };
    }
    free();
    return undefined;
  }

  /** Refuses a request that could not be read; `head` is what has arrived of its head. */
  refuse(
    { socket, peer }: { readonly socket: Duplex; readonly peer: Peer },
    thrown: Failure,
    head: string,
  ): void {
    const { requestLog, now } = this.#parts;
    const { address } = peer;
    const reply = this.#refusal(thrown, head, peer);
    const bytes = writeAndClose(socket, reply, now());
    requestLog.recordRefused(head, this.start(), reply, { address, bytes });
  }

  #refusal(thrown: Failure, head: string, peer: Peer): Reply {
    try {
      if (thrown.status !== unencodedStatus) throw thrown;
      const arrived = { ...splitHead(head), httpVersion: '1.1', scheme: schemeOf(peer), peer };
      const { target } = parseRequest(arrived, this.#parts.serving().config.server);
      return respelledReply(target, 'none');
    } catch (refused) {
      const { failure, id } = loggedFailure(this.#parts, refused, peer.address);
      return contentFailure(failure, id, undefined);
    }
  }

  /**
   * Counts the content of a prepared answer as unread until the returned function is called.
   * Undefined if that is too much: the request then gets the refusal of any other.
   */
  #hold({ content }: Prepared, address: ClientAddress): (() => void) | undefined {
    if (typeof content !== 'object') return releaseNothing;
    const holder = { keyId: undefined, address };
    try {
      return this.#parts.shared.unread.hold(holder, [content]);
    } catch {
      return undefined;
    }
  }

  /** Makes a new answer to a request, and prepares it for later requests if it is reusable. */
  #answer({
    exchange,
    start,
    prepare,
    open,
  }: {
    readonly exchange: Exchange;
    readonly start: RequestStart;
    readonly prepare?:
      | { readonly request: PreparableRequest; readonly prepared: PreparedReplies }
      | undefined;
    readonly open?: OpenProtocol | undefined;
  }): void {
    const { log, newId, requestLog } = this.#parts;
    const { moment, span } = start;
    const details = requestLog.details(exchange, moment);
    const { sourceAnswered } = details ?? {};
    const parts = sourceAnswered === undefined ? this.#parts : { ...this.#parts, sourceAnswered };
    const { peer } = exchange;
    const request = prepare?.request;
    const known = request?.target;
    const responder = new Responder(parts, moment, exchange, { known, open });
    const answer = async (): Promise<void> => {
      const reply = withHsts(await responder.reply(), moment.serving.config.tls, peer);
      prepare?.prepared.keep(prepare.request, moment, { reply, address: peer.address });
      const { cut, bytes } = await responder.send(reply);
      const { address, caller, incoming } = responder;
      const fields = request?.head;
      requestLog.record(exchange, start, reply, {
        address,
        keyId: caller?.keyId,
        bytes,
        cut,
        fields,
        details,
        place: incoming?.target,
        claimedCountry: incoming?.claims.country,
      });
    };
    const answered = span === undefined ? answer() : runInSpan(span, answer);
    answered.catch((error: unknown) => {
      log.error({ err: error, id: newId() }, 'an answer failed');
      span?.end({ error: 'internal' });
      exchange.destroy();
    });
  }
}
