import { hasKey, type IncomingRequest } from '../../core/pipeline/incoming-request.ts';
import type { Step } from '../../core/pipeline/pipeline.ts';
import type { Caller } from '../../core/values/key.ts';
import type { Rates } from '../../core/fair/rates.ts';

/** The step of `[rate.<name>]`; `callerOf` identifies a caller by its key. */
export function ratesStep(
  rates: Rates,
  callerOf: (incoming: IncomingRequest) => Caller | undefined,
): Step {
  return {
    at: 'rates',
    handle(request, next) {
      const { sent, origin, path, address, visitor } = request;
      if (sent === undefined) return next(request);
      const { incoming } = sent;
      const counted = rates.count({
        ...{ origin, path, address, fields: incoming.fields },
        visitor: () => visitor,
        keyId: () => (hasKey(incoming) ? callerOf(incoming)?.keyId : undefined),
      });
      return counted === undefined ? next(request) : counted.then(() => next(request));
    },
    explain(request, next) {
      const explained = next(request);
      return { ...explained, notes: [...rates.explain(request), ...explained.notes] };
    },
  };
}
