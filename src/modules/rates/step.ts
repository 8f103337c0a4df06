import type { Step } from '../../core/pipeline/pipeline.ts';
import type { Rates } from './rates.ts';

/** The step of `[rate.<name>]`. */
export function ratesStep(rates: Pick<Rates, 'explain'>): Step {
  return {
    at: 'rates',
    explain(request, next) {
      const explained = next(request);
      return { ...explained, notes: [...rates.explain(request), ...explained.notes] };
    },
  };
}
