import type { Step, StepRequest } from '../../core/pipeline/pipeline.ts';
import type { SignedInWatch } from './signed-in-watch.ts';

/** The step that ends an open answer once its visitor is no longer signed in. */
export function signInStep(signedIn: Pick<SignedInWatch, 'watch'>): Step {
  const watch = ({ sent, visitor }: StepRequest): void => {
    if (sent === undefined) return;
    const { incoming, exchange } = sent;
    const end = (): void => {
      exchange.destroy();
    };
    const unwatch = signedIn.watch({ incoming, visitor, end });
    if (unwatch !== undefined) exchange.onClose(unwatch);
  };
  return {
    at: 'sign-in',
    handle(request, next) {
      watch(request);
      return next(request);
    },
    open(request, next) {
      watch(request);
      return next(request);
    },
  };
}
