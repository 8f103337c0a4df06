import { runPublish } from '../../../../src/modules/drafts/operations/publish.ts';
import type { ScheduleParts } from '../../../../src/modules/drafts/operations/scheduled-publisher.ts';
import { silentLog } from '../../../../src/core/report/log.ts';

/** What publishes scheduled drafts of a store in this thread, whatever their size. */
export function scheduleParts(
  parts: Pick<ScheduleParts, 'store' | 'newId' | 'now'>,
  required = false,
): ScheduleParts {
  return {
    ...parts,
    log: silentLog,
    review: () => ({ required }),
    anonymous: () => [],
    publishInThread: (request) => runPublish(parts, request),
  };
}
