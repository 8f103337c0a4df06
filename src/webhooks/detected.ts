import { errorDetected, type EventFields } from '../model/event.ts';
import { detectedRememberedMax } from './limits.ts';
import type { JsonObject } from '../model/json.ts';
import { remembered } from '../model/remembered.ts';
import type { Store } from '../store/store.ts';

const minuteMs = 60_000;

/** A failure that an `error.detected` event reports. */
interface DetectedError {
  readonly code: string;
  /** A sentence for people, without secrets and addresses. */
  readonly message: string;
  /** The id of the rule or hook that failed. */
  readonly id: string;
  /** Other members of the event's data. */
  readonly more?: JsonObject;
  /** The hook that does not get the event: a delivery about its own failure would fail again. */
  readonly about?: string;
}

/** Raises an `error.detected`, at most one a minute for an id. Rejects when it cannot be stored. */
export type Detect = (error: DetectedError) => Promise<void>;

/** Makes a Detect. The limit of one a minute holds across all processes on the log. */
export function createDetect({
  store,
  newId,
  now,
  by,
}: {
  readonly store: Pick<Store, 'commit'>;
  readonly newId: () => string;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** The author of the events in the log. */
  readonly by: string;
}): Detect {
  // So frequent failures do not query the store each time.
  const latest = remembered<number>(detectedRememberedMax);

  return async ({ code, message, id, more = {}, about }) => {
    const minute = Math.floor(now() / minuteMs);
    if (latest.get(id) === minute) return;
    latest.set(id, minute);
    const fields: EventFields = {
      type: errorDetected,
      occurred_at: new Date(now()).toISOString(),
      data: { code, message, id, ...more },
      ...(about !== undefined && { about }),
    };
    const vk = { vk: `error:${id}:${minute}`, requestHash: '' };
    const data = fields as unknown as JsonObject;
    await store.commit(by, (reads) => {
      const isFirst = reads.vkClaim(vk.vk) === undefined;
      const draft = { family: 'event', id: newId(), action: 'insert', data, vk } as const;
      return { drafts: isFirst ? [draft] : [], answer: () => undefined };
    });
  };
}
