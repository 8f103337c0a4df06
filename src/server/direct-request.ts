import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

/** What is looked at of a request besides its content, whoever has read its head. */
export type RequestMessage = Pick<
  IncomingMessage,
  'method' | 'url' | 'httpVersion' | 'httpVersionMinor' | 'rawHeaders' | 'headers' | 'socket'
>;

/** A request without content whose head Node's parser has not seen. */
export class DirectRequest implements RequestMessage {
  readonly method: string;
  readonly url: string;
  readonly httpVersion = '1.1';
  readonly httpVersionMinor = 1;
  readonly rawHeaders: string[];
  readonly socket: Socket;

  constructor(
    { method = '', url = '', rawHeaders }: Pick<RequestMessage, 'method' | 'url' | 'rawHeaders'>,
    socket: Socket,
  ) {
    this.method = method;
    this.url = url;
    this.rawHeaders = rawHeaders;
    this.socket = socket;
  }

  /** Made for who asks: the door reads the list. */
  get headers(): IncomingHttpHeaders {
    const headers = Object.create(null) as IncomingHttpHeaders;
    for (let at = 0; at < this.rawHeaders.length; at += 2) {
      headers[this.rawHeaders[at]?.toLowerCase() ?? ''] ??= this.rawHeaders[at + 1];
    }
    return headers;
  }
}
