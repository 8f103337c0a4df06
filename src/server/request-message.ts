import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';

/** The parts of a request besides its content, from Node's parser or from ours. */
export interface RequestMessage extends Pick<
  IncomingMessage,
  'method' | 'url' | 'httpVersion' | 'httpVersionMinor' | 'rawHeaders' | 'socket'
> {
  /** The fields that a failure needs before the request is validated, or when it is refused. */
  readonly headers: Pick<IncomingHttpHeaders, 'accept'>;
}
