import type { TLSSocket } from 'node:tls';
import { needsUser } from '../model/visitor.ts';
import type { AccessDetails } from '../observability/access-entry.ts';
import { isReadable, type RequestMessage } from './http-message.ts';
import { acceptRequest } from './incoming-request.ts';
import type { Serving } from './serving.ts';

/** Finds the values of a request that only some access logs show; begins before its content. */
export class RequestDetails {
  readonly #message: RequestMessage;
  readonly #tls: string | undefined;
  #bytesIn = 0;
  #sourceMs: number | undefined;

  constructor(message: RequestMessage) {
    this.#message = message;
    const { encrypted, getProtocol } = message.socket as Partial<TLSSocket>;
    // Now, because a closed connection no longer knows it.
    if (encrypted === true) this.#tls = getProtocol?.call(message.socket) ?? undefined;
    if (!isReadable(message)) return;
    // A listener of `data` would begin to read the content, which nobody may want.
    const push = message.push.bind(message);
    message.push = (chunk: unknown, encoding?: BufferEncoding) => {
      if (Buffer.isBuffer(chunk)) this.#bytesIn += chunk.length;
      return push(chunk, encoding);
    };
  }

  /** To be called when a source has answered, with the time that it took. */
  readonly sourceAnswered = (ms: number): void => {
    this.#sourceMs = ms;
  };

  /** The values so far. It never rejects. */
  async found(serving: Serving): Promise<AccessDetails> {
    return {
      tls: this.#tls,
      bytesIn: this.#bytesIn,
      sourceMs: this.#sourceMs,
      user: await userOf(serving, this.#message),
    };
  }
}

/** The name of the signed-in user of a request; undefined for a request that is refused. */
async function userOf(serving: Serving, message: RequestMessage): Promise<string | undefined> {
  try {
    const visitor = serving.visitors.visitorOf(acceptRequest(serving, message));
    await visitor.prepare(needsUser);
    return visitor.signedInUser()?.name;
  } catch {
    return undefined;
  }
}
