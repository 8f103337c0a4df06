import { setImmediate as nextTurn } from 'node:timers/promises';
import { retentionQueuesAtOnce } from '../model/limits.ts';
import type { Log } from '../observability/log.ts';
import type { Deliveries, QueueKey } from '../store/deliveries.ts';

/** What keeping messages for a time stands on. */
interface RetentionParts {
  readonly deliveries: Deliveries;
  readonly log: Log;
  /** The id of the hook that a queue is of. */
  readonly hookId: (queue: QueueKey) => string;
  readonly signal: AbortSignal;
}

/**
 * Lets all messages go that are from before a time, in milliseconds since 1970 (`[webhook]
 * retention`): attempts at them, and what waits for a hook that is paused. Says in the log what was
 * never delivered. Rejects when the store cannot be written.
 */
export async function letExpiredGo(
  { deliveries, log, hookId, signal }: RetentionParts,
  beforeMs: number,
): Promise<void> {
  const before = new Date(beforeMs).toISOString();
  for (const [at, queue] of deliveries.queues().entries()) {
    if (at % retentionQueuesAtOnce === 0) await nextTurn();
    let unsent = 0;
    while (!signal.aborted && deliveries.hasExpired(queue, before)) {
      unsent += (await deliveries.expire(queue, before)).unsent;
    }
    if (unsent === 0) continue;
    const told = { hook: hookId(queue), events: unsent };
    log.warn(told, 'events of a webhook were kept for as long as they are, and not delivered');
  }
}
