import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import { headerBlockBytesMax } from '../http/limits.ts';
import type { FieldList } from '../http/reply.ts';
import type { Connect } from './connector.ts';
import type { Control, OutboundExchange } from './exchange.ts';
import { connectionClosed } from './failure.ts';
import { RequestContent } from './request-content.ts';
import type { RequestExtras } from './request-extras.ts';
import { StalledTimer } from './stalled-timer.ts';

type Request = Dispatcher.DispatchOptions & RequestExtras;

/** How the request is sent; `timeoutMs` limits the waits for a header section and for content. */
interface NodeRequestOptions {
  readonly connect: Connect;
  readonly timeoutMs: number;
}

/**
 * Sends a request with an Expect, or with trailer fields, over a connection of its own by Node's
 * HTTP/1.1 client, since undici has neither. Calls the exchange as undici would.
 */
export function sendByNode(
  request: Request,
  exchange: OutboundExchange,
  { connect, timeoutMs }: NodeRequestOptions,
): void {
  const { host, hostname, protocol, port } = new URL(String(request.origin));
  const { servername } = request as { readonly servername?: string };
  const to = { host, hostname: hostname.replace(/^\[|\]$/g, ''), protocol, port };
  const named = servername === undefined ? {} : { servername };
  connect({ ...to, ...named }, (...[error, socket]) => {
    if (error === null) new NodeRequest(request, exchange, { socket, timeoutMs }).begin();
    else exchange.onResponseError(null, error);
  });
}

/** One request over a connection of its own. */
class NodeRequest {
  readonly #request: Request;
  readonly #exchange: OutboundExchange;
  readonly #sent: ClientRequest;
  readonly #timer: StalledTimer;
  readonly #control: Control;
  #content: RequestContent | undefined;
  #message: IncomingMessage | undefined;
  #isOver = false;

  constructor(
    request: Request,
    exchange: OutboundExchange,
    { socket, timeoutMs }: { readonly socket: Socket; readonly timeoutMs: number },
  ) {
    this.#request = request;
    this.#exchange = exchange;
    this.#sent = process.getBuiltinModule('node:http').request({
      createConnection: () => socket,
      method: request.method,
      path: request.path,
      setHost: false,
      maxHeaderSize: headerBlockBytesMax,
      headers: withFraming(request),
    });
    this.#timer = new StalledTimer(request.headersTimeout ?? timeoutMs, (error) => {
      this.#fail(error);
    });
    this.#control = {
      abort: () => {
        this.#finish();
        this.#sent.destroy();
      },
      pause: () => this.#message?.pause(),
      resume: () => this.#message?.resume(),
    };
  }

  begin(): void {
    const sent = this.#sent;
    sent.on('error', (error) => {
      this.#fail(error);
    });
    sent.once('close', () => {
      this.#fail(connectionClosed());
    });
    sent.on('information', ({ statusCode, httpVersion, rawHeaders }) => {
      this.#startResponse(statusCode, httpVersion, rawHeaders);
    });
    sent.once('continue', () => this.#content?.begin());
    sent.once('response', (message) => {
      this.#receive(message);
    });
    this.#exchange.onRequestStart(this.#control);
    if (!this.#isOver) this.#send();
  }

  #send(): void {
    const { expectsContinue = false, trailers } = this.#request;
    const body = this.#request.body as Readable;
    // With an Expect, the head goes out before the content.
    this.#sent.flushHeaders();
    // Ahead of the pipe, which ends the request.
    body.once('end', () => {
      if (trailers !== undefined) this.#sent.addTrailers(pairsOf(trailers()));
    });
    this.#content = new RequestContent(body, this.#sent, {
      expectsContinue,
      sent: this.#timer.restart,
      broken: (error) => {
        this.#fail(error);
      },
    });
  }

  #startResponse(status: number, version: string, rawHeaders: readonly string[]): void {
    this.#timer.restart();
    if (this.#isOver) return;
    const httpVersion = version === '1.0' ? '1.0' : '1.1';
    this.#exchange.onResponseStart({ ...this.#control, httpVersion, rawHeaders }, status);
  }

  #receive(message: IncomingMessage): void {
    this.#message = message;
    this.#exchange.onResponseStarted();
    this.#startResponse(message.statusCode ?? 0, message.httpVersion, message.rawHeaders);
    message.on('data', (chunk: Buffer) => {
      this.#timer.restart();
      if (!this.#isOver) this.#exchange.onResponseData(this.#control, chunk);
    });
    message.once('end', () => {
      if (this.#isOver || !message.complete) return;
      this.#finish();
      const { rawTrailers } = message;
      this.#exchange.onResponseEnd({ ...this.#control, rawTrailers });
      this.#sent.destroy();
    });
  }

  #fail(error: Error): void {
    if (this.#isOver) return;
    this.#finish();
    this.#exchange.onResponseError(null, error);
    this.#sent.destroy();
  }

  #finish(): void {
    this.#isOver = true;
    this.#timer.stop();
    this.#content?.end();
  }
}

/** The fields as Node sends them unchanged: name, value, name, value. */
function withFraming({ headers, origin, expectsContinue = false }: Request): readonly string[] {
  const fields = headers as FieldList;
  const has = (name: string): boolean =>
    fields.some((field, at) => at % 2 === 0 && field.toLowerCase() === name);
  return [
    ...fields,
    ...(has('host') ? [] : ['host', new URL(String(origin)).host]),
    ...(has('content-length') ? [] : ['transfer-encoding', 'chunked']),
    ...(expectsContinue ? ['expect', '100-continue'] : []),
    ...['connection', 'close'],
  ];
}

function pairsOf(fields: FieldList): [string, string][] {
  return fields.flatMap((name, at): [string, string][] =>
    at % 2 === 0 ? [[name, fields[at + 1] ?? '']] : [],
  );
}
