import { Readable } from 'node:stream';
import type { ContentRequest } from '../http/request.ts';
import { Failure } from '../model/failure.ts';
import { fetchTriesMax } from '../model/limits.ts';
import { isIdempotent, isSafe } from '../model/method.ts';
import type { SourceResponse } from '../outbound/exchange.ts';
import type { Attempt, FetchHealth } from './fetch-health.ts';
import type { FetchWay } from './fetch-source.ts';

/** What a source has answered, and by which way it was asked. */
export interface Answered {
  readonly way: FetchWay;
  readonly answer: SourceResponse;
}

/** Asks by one way; `begun` is told right before the first byte is sent. */
export type Ask = (way: FetchWay, begun?: () => void) => Promise<SourceResponse>;

/** What says that a server, or one behind it, cannot answer at this moment (RFC 9110 §15.6). */
const passing: ReadonlySet<number> = new Set([502, 503, 504]);

/**
 * Asks one of several sources, and the next one where nothing has been sent, or where the request
 * may be repeated (RFC 9110 §9.2.2) and the source broke off, or, of what changes nothing, answers
 * 502, 503 or 504. A source that had the request and kept silent till the time-out is not made up
 * for. Rejects as the last one did.
 */
export async function askOneOf(
  ways: readonly FetchWay[],
  request: Pick<ContentRequest, 'method' | 'body' | 'signal'>,
  { ask, health }: { readonly ask: Ask; readonly health: FetchHealth },
): Promise<Answered> {
  const ordered = health.order(ways).slice(0, fetchTriesMax);
  for (const [at, way] of ordered.entries()) {
    const next = ordered[at + 1];
    const attempt = health.begin(way.source.origin);
    const sent: { hasBegun: boolean } = { hasBegun: false };
    try {
      const answer = await ask(way, () => {
        sent.hasBegun = true;
      });
      attempt.answered();
      const isElsewhere = next !== undefined && !health.isSetAside(next.source.origin);
      if (passing.has(answer.status) && isSafe(request.method) && isElsewhere) {
        answer.discard();
        attempt.ended();
        continue;
      }
      return { way, answer: untilEnd(answer, attempt) };
    } catch (thrown) {
      attempt.ended();
      if (!isOfSource(thrown) || request.signal.aborted) throw thrown;
      attempt.failed();
      const isRepeatable =
        thrown.code === 'bad_gateway' && request.body === undefined && isIdempotent(request.method);
      if (next === undefined || (sent.hasBegun && !isRepeatable)) throw thrown;
    }
  }
  throw new Error('There was no way to ask.');
}

/** Whether a failure is the source's, and neither the request's nor a mistake of ours. */
function isOfSource(thrown: unknown): thrown is Failure {
  if (!(thrown instanceof Failure)) return false;
  return thrown.code === 'bad_gateway' || thrown.code === 'gateway_timeout';
}

/**
 * Whether the connection is what content has failed by, and not whoever wanted it. Silence in the
 * middle of an answer, such as an event stream, says nothing of a source.
 */
function isCut(error: Error | null): boolean {
  return isOfSource(error) && error.code === 'bad_gateway' && error.cause !== undefined;
}

/** An answer that tells its attempt what becomes of its content. */
function untilEnd(answer: SourceResponse, attempt: Attempt): SourceResponse {
  if (answer.connection !== undefined) {
    attempt.whole();
    answer.connection.once('close', () => {
      attempt.ended();
    });
    return answer;
  }
  return {
    ...answer,
    content() {
      const content = answer.content();
      if (content instanceof Readable) {
        content.once('close', () => {
          if (content.readableEnded) attempt.whole();
          else if (isCut(content.errored)) attempt.failed();
          attempt.ended();
        });
      } else {
        attempt.whole();
        attempt.ended();
      }
      return content;
    },
    discard() {
      answer.discard();
      attempt.whole();
      attempt.ended();
    },
  };
}
