import type { ServerResponse } from 'node:http';
import { hasTooManyRanges } from '../http/ranges.ts';
import { prefersHtml } from '../http/negotiation.ts';
import {
  discard,
  noBody,
  withoutFields,
  type Recipient,
  type FieldList,
  type Reply,
} from '../http/reply.ts';
import { Failure } from '../model/failure.ts';
import { hasScope, type Caller } from '../model/key.ts';
import { servicePath } from '../model/path.ts';
import { canReadOver, hasBody, requireWhole } from './h1/body.ts';
import { answerSignal, ClientGone } from './h1/client-gone.ts';
import { peerAddress } from './h1/connections.ts';
import { acceptRequest, authenticateRequest, type IncomingRequest } from './incoming-request.ts';
import type { RequestMessage, SendingResponse, Sent } from './http-message.ts';
import { contentFailure, loggedFailure, type FailureLogs } from './failures.ts';
import { sendInterim } from './h1/node-http.ts';
import { linger } from './h1/refusal.ts';
import { contentBegun, send } from './send.ts';
import type { Moment, Serving } from './serving.ts';
import { answerService } from './service.ts';
import type { SharedLimits } from './shared-limits.ts';

/** What an exchange needs of its surroundings. */
export interface ExchangeParts extends FailureLogs {
  /**
   * What comes before everything else: the answer to a challenge of an ACME server, or one that
   * sends a request in the clear on to https.
   */
  readonly earlyReply: (
    serving: Serving,
    incoming: IncomingRequest,
    message: RequestMessage,
  ) => Reply | undefined | Promise<Reply | undefined>;
  readonly shared: SharedLimits;
}

/** One request and its answer, under the configuration that was in force when it came. */
export class Exchange {
  readonly #parts: ExchangeParts;
  readonly #moment: Moment;
  readonly #message: RequestMessage;
  readonly #response: ServerResponse | SendingResponse;
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

  /** The answer, whatever happens: every failure has one. */
  async reply(): Promise<Reply> {
    const message = this.#message;
    const { serving } = this.#moment;
    let incoming: IncomingRequest | undefined;
    try {
      requireWhole(message);
      incoming = acceptRequest(serving, message);
      this.address = incoming.address;
      const early = this.#parts.earlyReply(serving, incoming, message);
      const elsewhere = early instanceof Promise ? await early : early;
      if (elsewhere !== undefined) return elsewhere;
      const { range } = incoming.fields;
      if (range !== undefined && hasTooManyRanges(range)) {
        this.#parts.limits.passed('ranges', this.address);
      }
      const path = servicePath(incoming.target.path, serving.config.server.base);
      if (path !== undefined) return await this.#service(path, incoming);
      const reply = await this.#content(incoming);
      if (reply.body.kind === 'stream') await contentBegun(reply.body.stream);
      const timed = this.#withServerTiming(reply, incoming);
      this.#hold(timed, this.caller);
      return timed;
    } catch (thrown) {
      const { failure, id } = loggedFailure(this.#parts, thrown, this.address);
      // After a head that can be read in two ways, the start of the next request is uncertain.
      if (incoming === undefined || failure.limit === 'open_files') {
        this.#response.shouldKeepAlive = false;
      }
      const accept = (incoming?.fields ?? message.headers).accept;
      const reply = contentFailure(failure, id, accept);
      if (incoming === undefined) return reply;
      const isForPerson = prefersHtml(accept);
      const own = isForPerson ? await this.#ownPage(reply, incoming) : undefined;
      return this.#withServerTiming(own ?? reply, incoming);
    }
  }

  /**
   * Sends the answer, to a HEAD without content, and ends the connection of a request whose content
   * nobody has read.
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
    if (!hasBody(message) || message.readableEnded || canReadOver(message)) return;
    this.#response.shouldKeepAlive = false;
    const { socket } = message;
    // A session of HTTP/2 goes on whatever becomes of one request.
    if (!('destroySoon' in socket)) return;
    // Node would close it at once, and the reset take the answer away (RFC 9112 §9.6).
    socket.destroySoon = () => {
      linger(socket, () => {
        this.#parts.limits.passed('unread_content', this.address);
      });
    };
  }

  /** What the site answers. */
  #content(incoming: IncomingRequest): Reply | Promise<Reply> {
    const message = this.#message;
    const recipient: Recipient = {
      signal: new ClientGone(this.#response, message.socket),
      interim: (status, fields) => {
        // Who speaks HTTP/1.0 does not know what it is.
        if (message.httpVersion !== '1.0') this.#interim(status, fields);
      },
    };
    const { site, visitors } = this.#moment.serving;
    return site.respond({
      ...incoming.target,
      ...recipient,
      method: message.method ?? '',
      fields: incoming.fields,
      address: incoming.address,
      visitor: visitors.visitorOf(incoming),
      body: hasBody(message) ? message : undefined,
    });
  }

  /** A failure as the site has it shown, with all that it says to programs. */
  async #ownPage(reply: Reply, incoming: IncomingRequest): Promise<Reply | undefined> {
    const { site, visitors } = this.#moment.serving;
    const visitor = visitors.visitorOf(incoming);
    const failed = { ...incoming.target, ...incoming, visitor };
    const page = await site.errorPage(reply.status, failed);
    if (page === undefined) return undefined;
    const said = withoutFields(reply.fields, ...page.fields.map((name) => name.toLowerCase()));
    const fields = [...page.fields, ...withoutFields(said, 'content-length')];
    return { ...page, fields, ...(reply.failureId && { failureId: reply.failureId }) };
  }

  async #service(path: string, incoming: IncomingRequest): Promise<Reply> {
    const response = this.#response;
    let signal: AbortSignal | undefined;
    const { reply, caller } = await answerService(this.#moment.serving, {
      path,
      message: this.#message,
      incoming,
      fail: (thrown) => loggedFailure(this.#parts, thrown, this.address),
      requests: this.#parts.shared.requests,
      hold: (...given) => {
        this.#hold(...given);
      },
      // No accessor: V8 gives each object that has one a shape of its own.
      signal: () => (signal ??= answerSignal(response)),
    });
    this.caller = caller;
    return reply;
  }

  /** Counts content as unread until the answer has gone out; throws where too much is. */
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
   * Says which source answered, to callers who may read rules or when the ini file wants it
   * (docs/design/requests.md#precedence).
   */
  #withServerTiming(reply: Reply, incoming: IncomingRequest): Reply {
    if (incoming.fields.apikey !== undefined) this.caller = this.#identifyQuietly(incoming);
    const wanted = this.#moment.serving.config.log.explain;
    if (!wanted && (this.caller === undefined || !hasScope(this.caller, 'read'))) return reply;
    return {
      ...reply,
      fields: [...reply.fields, 'Server-Timing', `waymark;desc="${reply.source}"`],
    };
  }

  /** A wrong key does not keep a visitor from a page; it only counts as one. */
  #identifyQuietly(incoming: IncomingRequest): Caller | undefined {
    try {
      return authenticateRequest(this.#moment.serving, incoming);
    } catch (thrown) {
      if (thrown instanceof Failure) return undefined;
      throw thrown;
    }
  }
}
