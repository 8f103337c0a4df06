import { nextTimeOfDay } from '../../core/values/time.ts';
import { type StoredHook, isDelivered } from './hook.ts';
import type { Deliveries } from './log/deliveries.ts';
import { type BatchTime, batchLimits } from './upcoming-messages.ts';

/**
 * When the next batch of a hook leaves, ISO 8601, UTC; in the past for one that is due. Undefined
 * for a paused hook, one without batches, and one with `every` for which no event waits. A hook
 * with `order` sends a batch that failed before the next one.
 */
export function nextBatchAt(
  { hook, insertedSeq }: StoredHook,
  deliveries: Pick<Deliveries, 'queued' | 'event' | 'firstWaiting' | 'latest'>,
  nowMs: number,
): string | undefined {
  const limits = isDelivered(hook) ? batchLimits(hook) : undefined;
  if (limits === undefined) return undefined;
  const blocking = hook.order ? deliveries.firstWaiting(insertedSeq) : undefined;
  const retryAt = blocking && deliveries.latest(insertedSeq, blocking.n)?.dueAt;
  if (retryAt !== undefined) return retryAt;
  const [first] = deliveries.queued(insertedSeq, 0, 1);
  const storedAt = first && deliveries.event(first.logSeq).stored_at;
  const atMs = batchTime(
    limits.when,
    storedAt === undefined ? undefined : Date.parse(storedAt),
    nowMs,
  );
  return atMs === undefined ? undefined : new Date(atMs).toISOString();
}

/** The time of a batch whose oldest event was stored at `storedMs`, in milliseconds since 1970. */
function batchTime(
  when: BatchTime,
  storedMs: number | undefined,
  nowMs: number,
): number | undefined {
  // After the system time was set back, an event can seem to lie in the future.
  const fromMs = Math.min(storedMs ?? nowMs, nowMs);
  if ('minutes' in when) return nextTimeOfDay(fromMs, when.minutes, when.zone);
  return storedMs === undefined ? undefined : fromMs + when.everyMs;
}
