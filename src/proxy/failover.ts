import { Readable } from 'node:stream';
import type { ContentRequest } from '../http/request.ts';
import { Failure } from '../model/failure.ts';
import { sourceTriesMax } from './limits.ts';
import { isIdempotent, isSafe } from '../model/method.ts';
import type { SourceResponse } from '../outbound/exchange.ts';
import type { SourceAttempt, SourceHealth } from './source-health.ts';
import type { SourceTarget } from './fetch-plan.ts';

/** What a source has answered, and by which way it was asked. */
export interface TargetAnswer {
  readonly way: SourceTarget;
  readonly answer: SourceResponse;
}

/** Asks by one way; `begun` is told right before the first byte is sent. */
export type SendTo = (way: SourceTarget, begun?: () => void) => Promise<SourceResponse>;

/** What says that a server, or one behind it, cannot answer at this moment (RFC 9110 §15.6). */
const temporaryStatuses: ReadonlySet<number> = new Set([502, 503, 504]);

/**
 * Asks one of several sources, and the next one where nothing has been sent, or where the request
 * may be repeated (RFC 9110 §9.2.2) and the source broke off, or, of what changes nothing, answers
 * 502, 503 or 504. A source that had the request and kept silent till the time-out is not made up
 * for. Rejects as the last one did.
 */
export async function sendWithFailover(
  ways: readonly SourceTarget[],
  request: Pick<ContentRequest, 'method' | 'body' | 'signal'>,
  { ask, health }: { readonly ask: SendTo; readonly health: SourceHealth },
): Promise<TargetAnswer> {
  const ordered = health.order(ways).slice(0, sourceTriesMax);
  for (const [at, way] of ordered.entries()) {
    const next = ordered[at + 1];
    const attempt = health.start(way.source.origin);
    const sent: { hasBegun: boolean } = { hasBegun: false };
    try {
      const answer = await ask(way, () => {
        sent.hasBegun = true;
      });
      attempt.answered();
      const isElsewhere = next !== undefined && !health.isSetAside(next.source.origin);
      if (temporaryStatuses.has(answer.status) && isSafe(request.method) && isElsewhere) {
        answer.discard();
        attempt.ended();
        continue;
      }
      return { way, answer: trackContent(answer, attempt) };
    } catch (thrown) {
      attempt.ended();
      if (!isSourceFailure(thrown) || request.signal.aborted) throw thrown;
      attempt.failed();
      const isRepeatable =
        thrown.code === 'bad_gateway' && request.body === undefined && isIdempotent(request.method);
      if (next === undefined || (sent.hasBegun && !isRepeatable)) throw thrown;
    }
  }
  throw new Error('There was no way to ask.');
}

/** Whether a failure is the source's, and neither the request's nor a mistake of ours. */
function isSourceFailure(thrown: unknown): thrown is Failure {
  if (!(thrown instanceof Failure)) return false;
  return thrown.code === 'bad_gateway' || thrown.code === 'gateway_timeout';
}

/**
 * Whether the connection is what content has failed by, and not whoever wanted it. Silence in the
 * middle of an answer, such as an event stream, says nothing of a source.
 */
function isConnectionFailure(error: Error | null): boolean {
  return isSourceFailure(error) && error.code === 'bad_gateway' && error.cause !== undefined;
}

/** An answer that tells its attempt what becomes of its content. */
function trackContent(answer: SourceResponse, attempt: SourceAttempt): SourceResponse {
  if (answer.connection !== undefined) {
    attempt.completed();
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
          if (content.readableEnded) attempt.completed();
          else if (isConnectionFailure(content.errored)) attempt.failed();
          attempt.ended();
        });
      } else {
        attempt.completed();
        attempt.ended();
      }
      return content;
    },
    discard() {
      answer.discard();
      attempt.completed();
      attempt.ended();
    },
  };
}
