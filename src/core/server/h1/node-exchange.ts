import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { failBody } from '../../http/content/content.ts';
import type { FieldList, Reply } from '../../http/reply.ts';
import type { HttpVersion } from '../../http/request.ts';
import { canDiscardBody, hasBody } from '../../pipeline/body.ts';
import { ClientGone } from '../../pipeline/client-gone.ts';
import type { MessageHead, Prepared, RequestBody, Sent } from '../../pipeline/exchange.ts';
import type { Cancellation, Failure } from '../../values/failure.ts';
import type { Peer } from '../../values/network/peer.ts';
import { preparedTextBytesMax } from '../limits.ts';
import { peerOf } from '../listening/accept.ts';
import { type ContentWays, sendContent } from '../send-content.ts';
import type { Http1Exchange } from './connection.ts';
import { nodeFields, resetIfUnframed, sendInterim } from './node-http.ts';
import { endInPieces, goesInPieces } from './pieces.ts';
import { linger } from './refusal.ts';

/** Returns the head of a request that Node's parser has read. */
export function headOf({ method, url, httpVersion, rawHeaders }: IncomingMessage): MessageHead {
  const version = httpVersion as HttpVersion;
  return { method: method ?? '', url: url ?? '', version, fields: rawHeaders };
}

/** A request that Node's parser has read, and its answer by Node's HTTP server. */
export class NodeExchange implements Http1Exchange {
  readonly head: MessageHead;
  readonly peer: Peer;
  readonly socket: Socket;
  readonly body: RequestBody | undefined;
  readonly response: ServerResponse;
  failure: Failure | undefined;
  readonly #message: IncomingMessage;

  constructor(message: IncomingMessage, response: ServerResponse) {
    this.head = headOf(message);
    this.peer = peerOf(message.socket);
    this.socket = message.socket;
    this.body = hasBody(message.headers) ? message : undefined;
    this.response = response;
    this.#message = message;
  }

  get hasArrived(): boolean {
    return this.#message.complete;
  }

  get signal(): Cancellation {
    return new ClientGone(this, this.socket);
  }

  get shouldKeepAlive(): boolean {
    return this.response.shouldKeepAlive;
  }

  set shouldKeepAlive(shouldKeepAlive: boolean) {
    this.response.shouldKeepAlive = shouldKeepAlive;
  }

  get hasBegun(): boolean {
    return this.response.headersSent;
  }

  get isSent(): boolean {
    return this.response.writableFinished;
  }

  get isOver(): boolean {
    return this.response.destroyed;
  }

  onClose(listener: () => void): void {
    this.response.once('close', listener);
  }

  destroy(): void {
    this.response.destroy();
  }

  breakOff(failure: Failure): boolean {
    this.failure = failure;
    return this.body !== undefined && failBody(this.body, failure);
  }

  interim(status: number, fields: FieldList): void {
    // HTTP/1.0 has no interim responses.
    if (this.head.version !== '1.0') sendInterim(this.response, status, fields);
  }

  respond({ status, fields, body }: Reply, address = this.peer.address): Sent | Promise<Sent> {
    const { response } = this;
    response.writeHead(status, nodeFields(fields));
    switch (body.kind) {
      case 'none':
        response.end();
        return { bytes: 0, cut: false };
      case 'bytes': {
        const { bytes } = body;
        // A text with one character for each byte goes out with the head in one piece.
        if (bytes.length <= preparedTextBytesMax) response.end(bytes.toString('latin1'), 'latin1');
        else if (goesInPieces(response.socket, bytes)) return sendInPieces(response, bytes);
        else response.end(bytes);
        return { bytes: bytes.length, cut: false };
      }
      case 'file':
      case 'stream':
        return sendContent(response, contentWays(this), body, address);
    }
  }

  respondPrepared({ status, fields, content }: Prepared): void {
    const { response } = this;
    response.writeHead(status, nodeFields(fields));
    if (typeof content === 'string') response.end(content, 'latin1');
    else if (content !== undefined && goesInPieces(response.socket, content)) {
      void endInPieces(response, content);
    } else response.end(content);
  }

  leaveUnread(tooMuch: () => void): void {
    const { body } = this;
    if (body === undefined || body.readableEnded || canDiscardBody(this.#message.headers)) return;
    this.shouldKeepAlive = false;
    const { socket } = this;
    // Node would close the connection at once, and its reset discards the answer (RFC 9112 §9.6).
    socket.destroySoon = () => {
      linger(socket, tooMuch);
    };
  }
}

async function sendInPieces(response: ServerResponse, content: Buffer): Promise<Sent> {
  const bytes = await endInPieces(response, content);
  return { bytes, cut: bytes < content.length };
}

function contentWays(exchange: NodeExchange): ContentWays {
  const { response } = exchange;
  return {
    sendHead: () => {
      // `flushHeaders` would send it as UTF-8, with two bytes for each byte over 127.
      if (!response.writableEnded && !response.destroyed) response.write('', 'latin1');
    },
    trailWith: (trailers, stream) => {
      const add = (): void => {
        const fields = trailers();
        const pairs = fields.flatMap((name, at): [string, string][] =>
          at % 2 === 0 ? [[name, fields[at + 1] ?? '']] : [],
        );
        response.addTrailers(pairs);
      };
      // Ahead of the pipeline, which ends the answer.
      if (stream.readableEnded) add();
      else stream.once('end', add);
    },
    failed: () => {
      resetIfUnframed(exchange);
    },
  };
}
