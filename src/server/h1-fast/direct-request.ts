import type { IncomingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import type { RequestMessage } from '../request-message.ts';

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

  get headers(): Pick<IncomingHttpHeaders, 'accept'> {
    const { rawHeaders } = this;
    const isAccept = (at: number): boolean => rawHeaders[at - 1]?.toLowerCase() === 'accept';
    const values = rawHeaders.filter((_, at) => at % 2 === 1 && isAccept(at));
    return { accept: values.length === 0 ? undefined : values.join(', ') };
  }
}
