import type { IncomingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import type { Config } from '../config/config.ts';
import { enter, type Entrance } from './entrance.ts';
import type { PlainRequest } from './prepared.ts';
import type { RequestMessage } from './request-message.ts';
import type { Serving } from './serving.ts';

/**
 * A request without content whose head Node's parser has not seen. Nothing of it is used up: one of
 * the same bytes on the same connection is the same again.
 */
export class DirectRequest implements RequestMessage {
  readonly method: string;
  readonly url: string;
  readonly httpVersion = '1.1';
  readonly httpVersionMinor = 1;
  readonly rawHeaders: string[];
  readonly socket: Socket;
  /** As it is looked up among prepared answers; undefined where it is not. */
  readonly plain: PlainRequest | undefined;
  /** What the door made of it, and under which configuration. */
  #entered: { readonly config: Config; readonly entrance: Entrance } | undefined;

  constructor(
    { method = '', url = '', rawHeaders }: Pick<RequestMessage, 'method' | 'url' | 'rawHeaders'>,
    socket: Socket,
    plain: PlainRequest | undefined,
  ) {
    this.method = method;
    this.url = url;
    this.rawHeaders = rawHeaders;
    this.socket = socket;
    this.plain = plain;
  }

  /** As `enter`, which lets it in once under each configuration. */
  enter(serving: Serving): Entrance {
    const { config } = serving;
    if (this.#entered?.config !== config) {
      this.#entered = { config, entrance: enter(serving, this) };
    }
    return this.#entered.entrance;
  }

  get headers(): Pick<IncomingHttpHeaders, 'accept'> {
    const { rawHeaders } = this;
    const isAccept = (at: number): boolean => rawHeaders[at - 1]?.toLowerCase() === 'accept';
    const values = rawHeaders.filter((_, at) => at % 2 === 1 && isAccept(at));
    return { accept: values.length === 0 ? undefined : values.join(', ') };
  }
}
