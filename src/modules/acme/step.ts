import type { Step } from '../../core/pipeline/pipeline.ts';
import { whenReady } from '../../core/values/when-ready.ts';
import type { AcmeStore } from './acme-store.ts';
import { answerChallenge } from './challenge.ts';

/** The step that answers the challenges of an ACME server (RFC 8555 §8.3). */
export function challengeStep(acme: () => AcmeStore | undefined): Step {
  return {
    at: 'challenge',
    handle(request, next) {
      const answer = answerChallenge(request, acme());
      if (answer === undefined) return next(request);
      return whenReady(answer, (reply) => reply ?? next(request));
    },
  };
}
