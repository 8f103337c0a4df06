import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { TestContext } from 'node:test';
import { buffer } from 'node:stream/consumers';
import { httpSource } from '../outbound/sources.ts';

/** A delivery as it arrived. */
export interface Delivered {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: Buffer;
  // oxlint-disable-next-line typescript/no-explicit-any -- a test looks into it as it likes
  readonly body: any;
}

/** What a receiver answers: a status, or whatever it does with the response. */
export type Answer = number | ((response: ServerResponse, request: IncomingMessage) => void);

/** A receiver of webhooks that keeps what it gets. */
export interface TestReceiver {
  readonly url: string;
  readonly got: readonly Delivered[];
  /** Answers what comes next; 200 until it is told otherwise. */
  answer: (delivered: Delivered) => Answer;
  /** Resolves once so many have arrived. */
  until(count: number): Promise<readonly Delivered[]>;
  /** Resolves once so many have arrived that differ in their seq: to these, in order. */
  untilSeqs(count: number): Promise<readonly number[]>;
}

/** Starts a receiver on the loopback, for the time of a test. */
export async function startReceiver(t: TestContext): Promise<TestReceiver> {
  const got: Delivered[] = [];
  const waiting = new Set<() => void>();
  const when = <T>(look: () => T | undefined) =>
    new Promise<T>((resolve) => {
      const again = () => {
        const found = look();
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
      for (const look of waiting) look();
    });
  });
  return Object.assign(receiver, { url: `${origin}/hook` });
}
