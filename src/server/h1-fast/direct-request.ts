import type { IncomingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import type { Config } from '../../config/config.ts';
import type { Repeat } from '../../http/reply.ts';
import { enter, type Entrance } from '../entrance.ts';
import { HeadTexts } from './head-text.ts';
import { isSame, type Moment, type PlainRequest } from '../prepared.ts';
import type { RequestMessage } from '../request-message.ts';
import type { Serving } from '../serving.ts';

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
  /** Of what it was answered with. */
  readonly heads = new HeadTexts();
  /** What the door made of it, and under which configuration. */
  #entered: { readonly config: Config; readonly entrance: Entrance } | undefined;
  #repeat: { readonly moment: Moment; readonly repeat: Repeat } | undefined;

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

  /** How it is answered once more at a moment; undefined where that has to be found out. */
  repeatAt(now: Moment): Repeat | undefined {
    const known = this.#repeat;
    return known !== undefined && isSame(known.moment, now) ? known.repeat : undefined;
  }

  /** Keeps how it is answered once more, as was found out at a moment. */
  keepRepeat(moment: Moment, repeat: Repeat): void {
    this.#repeat = { moment, repeat };
  }

  get headers(): Pick<IncomingHttpHeaders, 'accept'> {
    const { rawHeaders } = this;
    const isAccept = (at: number): boolean => rawHeaders[at - 1]?.toLowerCase() === 'accept';
    const values = rawHeaders.filter((_, at) => at % 2 === 1 && isAccept(at));
    return { accept: values.length === 0 ? undefined : values.join(', ') };
  }
}
