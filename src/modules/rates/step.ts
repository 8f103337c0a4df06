import type { Rates } from '../../core/fair/rates.ts';
import type { Reply } from '../../core/http/reply.ts';
import { hasKey, type IncomingRequest } from '../../core/pipeline/incoming-request.ts';
import type { Step, StepRequest } from '../../core/pipeline/pipeline.ts';
import type { SwitchedProtocol } from '../../core/pipeline/source.ts';
import type { Caller } from '../../core/values/key.ts';
import { whenReady } from '../../core/values/when-ready.ts';

/** Identifies a caller by its key. */
type CallerOf = (incoming: IncomingRequest) => Caller | undefined;

/** The steps of `[rate.<name>]`: for the path of a client, and for those that it is led to. */
export function ratesSteps(rates: Rates, callerOf: CallerOf): readonly Step[] {
  const count = (request: StepRequest): void | Promise<void> => {
    const { sent, origin, path, address, visitor, ratedFor: countedFor } = request;
    const incoming = sent?.incoming;
    return rates.count({
      ...{ origin, path, address, fields: incoming?.fields ?? request.fields },
      visitor: () => visitor,
      keyId: () => (incoming && hasKey(incoming) ? callerOf(incoming)?.keyId : undefined),
      ...(countedFor && { countedFor }),
    });
  };
  const asked: Step = {
    at: 'rates',
    handle(request, next) {
      const counted = request.sent === undefined ? undefined : count(request);
      return counted === undefined ? next(request) : counted.then(() => next(request));
    },
    explain(request, next) {
      const explained = next(request);
      const notes = [...rates.explain(request), ...explained.notes];
      return { ...explained, notes: [...new Set(notes)] };
    },
  };
  const isLed = ({ inside }: Pick<StepRequest, 'inside'>): boolean =>
    inside === 'rewrite' || inside === 'line';
  const counting = <T extends Reply | SwitchedProtocol | undefined>(
    request: StepRequest,
    next: (request: StepRequest) => T | Promise<T>,
  ): T | Promise<T> => {
    const on = { ...request, ratedFor: [...(request.ratedFor ?? []), request.path] };
    if (!isLed(request) || !rates.covers(request)) return next(on);
    const counted = count(request);
    const answer = counted === undefined ? next(on) : counted.then(() => next(on));
    return whenReady(answer, countedAgain);
  };
  const led: Step = {
    at: 'access',
    handle: counting,
    open: counting,
    explain(request, next) {
      const explained = next(request);
      if (!isLed(request)) return explained;
      return { ...explained, notes: [...rates.explain(request), ...explained.notes] };
    },
  };
  return [asked, led];
}

/** An answer that is made for each request, since a prepared one counts for its own path alone. */
function countedAgain<T extends Reply | SwitchedProtocol | undefined>(answer: T): T {
  if (answer === undefined || 'connection' in answer) return answer;
  const { isReusable: _reusable, ...once } = answer;
  return once as T;
}
