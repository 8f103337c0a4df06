import { Readable } from 'node:stream';
import { type ContentRequest, isIdempotent, isSafe } from '../../core/http/request.ts';
import type { SourceResponse } from '../../core/outbound/exchange.ts';
import { Failure } from '../../core/values/failure.ts';
import type { SourceTarget } from './fetch-plan.ts';
import type { SourceAttempt, SourceHealth } from './source-health.ts';

/** The answer of a source, and the target that it was requested from. */
interface TargetAnswer {
  readonly target: SourceTarget;
  readonly answer: SourceResponse;
}

/** Sends the request to a target; calls `begun` right before the first byte is sent. */
export type SendTo = (target: SourceTarget, begun?: () => void) => Promise<SourceResponse>;

/** The statuses of a server that cannot answer at the moment (RFC 9110 §15.6). */
const temporaryStatuses: ReadonlySet<number> = new Set([502, 503, 504]);

/**
 * Sends a request to the first of several sources, and to the next one if the first fails before
 * anything was sent, if it breaks off and the request is idempotent (RFC 9110 §9.2.2), or if it
 * answers 502, 503 or 504 to a safe method. Does not try another source after a timeout: the first
 * may still be working on the request. Rejects as the last one did.
 */
export async function sendWithFailover(
  ordered: readonly SourceTarget[],
  request: Pick<ContentRequest, 'method' | 'body' | 'signal'>,
  {
    sendTo,
    health,
    checkPath,
  }: {
    readonly sendTo: SendTo;
    readonly health: SourceHealth;
    /** The path of the health check of the sources. */
    readonly checkPath: string | undefined;
  },
): Promise<TargetAnswer> {
  for (const [at, target] of ordered.entries()) {
    const next = ordered[at + 1];
    const attempt = health.start(target.source.server);
    const sent: { hasBegun: boolean } = { hasBegun: false };
    try {
      const answer = await sendTo(target, () => {
        sent.hasBegun = true;
      });
      attempt.answered();
      const isElsewhere = next !== undefined && !health.isPassedOver(next.source.server, checkPath);
      if (temporaryStatuses.has(answer.status) && isSafe(request.method) && isElsewhere) {
        answer.discard();
        attempt.ended();
        continue;
      }
      return { target, answer: trackContent(answer, attempt) };
    } catch (thrown) {
      attempt.ended();
      if (!isSourceFailure(thrown) || request.signal.aborted) throw thrown;
      attempt.failed();
      const isRepeatable =
        thrown.code === 'bad_gateway' && request.body === undefined && isIdempotent(request.method);
      if (next === undefined || (sent.hasBegun && !isRepeatable)) throw thrown;
    }
  }
  throw new Error('There is no target to send to.');
}

/** Whether the source failed, not the request or our code. */
export function isSourceFailure(thrown: unknown): thrown is Failure {
  if (!(thrown instanceof Failure)) return false;
  return thrown.code === 'bad_gateway' || thrown.code === 'gateway_timeout';
}

/**
 * Whether content failed because the connection broke, not because the client left. A timeout in
 * the middle of an answer, such as an event stream, does not count against a source.
 */
export function isConnectionFailure(error: Error | null): error is Failure {
  return isSourceFailure(error) && error.code === 'bad_gateway' && error.cause !== undefined;
}

/** An answer that reports to its attempt how its content ends. */
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
