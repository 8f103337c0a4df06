import { needsUser } from '../../http/visitor.ts';
import type { AccessDetails } from '../../report/access-entry.ts';
import type { Arrived, RequestBody } from '../exchange.ts';
import { acceptRequest } from '../incoming-request.ts';
import type { Serving } from '../serving.ts';

/** Finds the values of a request that only some access logs show; begins before its content. */
export class RequestDetails {
  readonly #asked: Arrived;
  readonly #tls: string | undefined;
  #bytesIn = 0;
  #sourceMs: number | undefined;

  constructor(asked: Arrived, body?: RequestBody) {
    this.#asked = asked;
    const { tls } = asked.peer;
    // Now, because a closed connection no longer knows it.
    this.#tls = tls?.getProtocol() ?? undefined;
    if (body === undefined) return;
    // A listener of `data` would begin to read the content, which nobody may want.
    const push = body.push.bind(body);
    body.push = (chunk: unknown, encoding?: BufferEncoding) => {
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
      user: await userOf(serving, this.#asked),
    };
  }
}

/** The name of the signed-in user of a request; undefined for a request that is refused. */
async function userOf(serving: Serving, asked: Arrived): Promise<string | undefined> {
  try {
    const visitor = serving.visitors.visitorOf(acceptRequest(serving, asked));
    await visitor.prepare(needsUser);
    return visitor.signedInUser()?.name;
  } catch {
    return undefined;
  }
}
