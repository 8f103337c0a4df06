import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';

/** What is looked at of a request besides its content, whoever has read its head. */
export interface RequestMessage extends Pick<
  IncomingMessage,
  'method' | 'url' | 'httpVersion' | 'httpVersionMinor' | 'rawHeaders' | 'socket'
> {
  /** For who asks before the door has read the list, or where it has let nobody in. */
  readonly headers: Pick<IncomingHttpHeaders, 'accept'>;
}
