import { winnerName } from '../../core/pipeline/explanation.ts';
import type { Step } from '../../core/pipeline/pipeline.ts';
import { type HeaderRule, headerRulesFor } from './response-headers.ts';

/** The step that changes the fields of answers, as `[headers.<name>]` and others say. */
export function fieldsStep(rules: readonly HeaderRule[]): Step {
  return {
    at: 'fields',
    explain(request, next) {
      const explained = next(request);
      const { winner } = explained;
      const source = winner === null ? 'none' : winnerName(winner);
      const headers = headerRulesFor(rules, source, request);
      return headers.length === 0 ? explained : { ...explained, headers };
    },
  };
}
