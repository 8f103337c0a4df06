import { winnerName } from '../../core/pipeline/explanation.ts';
import type { Step } from '../../core/pipeline/pipeline.ts';
import { servicePath } from '../../core/values/path.ts';
import { whenReady } from '../../core/values/when-ready.ts';
import { type HeaderRule, type ResponseHeaders, headerRulesFor } from './response-headers.ts';

/** The status of an opened protocol (RFC 9110 §15.2.2), whose head is sent already. */
const switchingProtocols = 101;

/**
 * The step that changes the fields of all answers but those of Waymark's own paths, as
 * `[headers.<name>]` and others say.
 */
export function fieldsStep(
  rules: readonly HeaderRule[],
  change: ResponseHeaders,
  base: string,
): Step {
  return {
    at: 'fields',
    handle(request, next) {
      const { fields } = request.sent?.incoming ?? request;
      if (servicePath(request.path, base) !== undefined) return next(request);
      return whenReady(next(request), (reply) =>
        reply === undefined || reply.status === switchingProtocols
          ? reply
          : change(reply, { ...request, fields }),
      );
    },
    explain(request, next) {
      const explained = next(request);
      const { winner } = explained;
      const source = winner === null ? 'none' : winnerName(winner);
      const headers = headerRulesFor(rules, source, request);
      return headers.length === 0 ? explained : { ...explained, headers };
    },
  };
}
