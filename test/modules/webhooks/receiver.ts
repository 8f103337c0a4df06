import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import type { Cleaning } from '../../folder.ts';
import { httpSource } from '../../core/outbound/sources.ts';

/** A delivery as it arrived. */
export interface Delivered {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: Buffer;
  // oxlint-disable-next-line typescript/no-explicit-any -- a test looks into it as it likes
  readonly body: any;
}

/** The response of a receiver: a status, or a function that writes it. */
export type Answer = number | ((response: ServerResponse, request: IncomingMessage) => void);

/** A receiver of webhooks that stores its deliveries. */
export interface TestReceiver {
  readonly url: string;
  readonly got: readonly Delivered[];
  /** Makes the next responses; 200 by default. */
  answer: (delivered: Delivered) => Answer;
  /** Resolves once this many deliveries have arrived. */
  until(count: number): Promise<readonly Delivered[]>;
  /** Resolves to deliveries with this many different seqs, in order, once they have arrived. */
  untilSeqs(count: number): Promise<readonly number[]>;
}

/** Starts a receiver on the loopback for a test. */
export async function startReceiver(t: Cleaning): Promise<TestReceiver> {
  const got: Delivered[] = [];
  const waiting = new Set<() => void>();
  const when = <T>(check: () => T | undefined) =>
    new Promise<T>((resolve) => {
      const again = () => {
        const found = check();
        if (found === undefined) return;
        waiting.delete(again);
        resolve(found);
      };
      waiting.add(again);
      again();
    });
  const receiver: TestReceiver = {
    url: '',
    got,
    answer: () => 200,
    until: (count) => when(() => (got.length < count ? undefined : got)),
    untilSeqs: (count) =>
      when(() => {
        const seqs = [...new Set(got.map(({ body }) => Number(body.seq)))];
        return seqs.length < count ? undefined : seqs.toSorted((one, other) => one - other);
      }),
  };
  const { origin } = await httpSource(t, (request, response) => {
    void buffer(request).then((bytes) => {
      const { url: path = '', headers } = request;
      const body: unknown = bytes.length === 0 ? undefined : JSON.parse(bytes.toString());
      const delivered = { path, headers, bytes, body };
      got.push(delivered);
      const answer = receiver.answer(delivered);
      if (typeof answer === 'number') response.writeHead(answer).end();
      else answer(response, request);
      for (const check of waiting) check();
    });
  });
  return Object.assign(receiver, { url: `${origin}/hook` });
}
