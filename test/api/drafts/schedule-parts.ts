import { runPublish } from '../../../src/api/drafts/publish.ts';
import type { ScheduleParts } from '../../../src/api/drafts/scheduled-publisher.ts';
import { silentLog } from '../../../src/observability/log.ts';

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
