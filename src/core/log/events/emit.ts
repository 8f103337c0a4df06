import type { Log } from '../../report/log.ts';
import { createLruCache } from '../../values/lru-cache.ts';
import type { LoggedDraft, Store, VkClaim } from '../store.ts';
import { type EventData, type OwnEventType, emitRateLimit } from './event-types.ts';
import { eventDraft, ownEvent } from './event.ts';

/** Values whose latest event is in the cache that limits how often `emit` raises events. */
const emittedRememberedMax = 10_000;

/**
 * Raises an event of a type of Waymark's own (event-types.ts). Resolves once the event
 * is durable, or dropped by the rate limit of its type, which holds across all processes on the
 * log. Never rejects: a failure to store the event goes to the log.
 */
export type Emit = <Type extends OwnEventType>(
  type: Type,
  data: EventData<Type>,
  options?: {
    /** The id of a hook that does not get the event: its delivery would fail again. */
    readonly about?: string;
  },
) => Promise<void>;

/** Stores an event; not if its claim was used before. */
export type PutEvent = (draft: LoggedDraft, claim: VkClaim | undefined) => Promise<unknown>;

/** Makes an Emit. */
export function createEmit({
  store,
  newId,
  now,
  by,
  put = storeEvent(store, by),
  log,
}: {
  readonly store: Pick<Store, 'commit'>;
  /** Stores an event elsewhere than in the log. */
  readonly put?: PutEvent | undefined;
  readonly newId: () => string;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** The author of the events in the log. */
  readonly by: string;
  readonly log: Log;
}): Emit {
  // Without this cache, each of many failures in a row would start a write transaction.
  const latestPeriods = createLruCache<number>(emittedRememberedMax);

  return async (type, data, options) => {
    const draft: LoggedDraft = eventDraft(newId(), ownEvent(type, data, now(), options));
    const period = periodOf(type, data, now());
    if (period !== undefined) {
      if (latestPeriods.get(period.key) === period.number) return;
      latestPeriods.set(period.key, period.number);
    }
    const claim = period && { vk: `emit:${period.key}:${period.number}`, requestHash: '' };
    try {
      await put(draft, claim);
    } catch (error) {
      log.warn({ err: error, type }, `Cannot store an event of the type ${type}.`);
    }
  };
}

function storeEvent(store: Pick<Store, 'commit'>, by: string): PutEvent {
  return (draft, claim) =>
    store.commit(by, (reads) => {
      const isUsedUp = claim !== undefined && reads.vkClaim(claim.vk) !== undefined;
      const drafts = isUsedUp ? [] : [{ ...draft, ...(claim && { vk: claim }) }];
      return { drafts, answer: () => undefined };
    });
}

/** The period of its rate limit in which an event occurs; undefined for a type without limit. */
function periodOf<Type extends OwnEventType>(
  type: Type,
  data: EventData<Type>,
  nowMs: number,
): { readonly key: string; readonly number: number } | undefined {
  const limit = emitRateLimit(type);
  if (limit === undefined) return undefined;
  const value = (data as Readonly<Record<string, unknown>>)[limit.per];
  return { key: `${type}:${String(value)}`, number: Math.floor(nowMs / limit.periodMs) };
}
