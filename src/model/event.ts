import type { Change } from './change.ts';
import type { JsonObject } from './json.ts';

/** Something that has happened, as hooks are told of it (docs/design/webhooks.md#events). */
export interface WaymarkEvent {
  /** The same for every hook and at every attempt. */
  readonly id: string;
  readonly type: string;
  /** ISO 8601, UTC. */
  readonly occurred_at: string;
  /** The counter where it happened; null for none. */
  readonly counter: string | null;
  readonly data: JsonObject;
  /** Position in the log of the change that it is or that causes it … */
  readonly logSeq: number;
  /** … and when that was stored, ISO 8601, UTC. */
  readonly stored_at: string;
  /** The only hook that it is for: that of a test. */
  readonly hook: string | undefined;
  /** The hook that it tells of, which does not get it. */
  readonly about: string | undefined;
}

/** The fields of an event as the log has them. */
export interface EventFields {
  readonly type: string;
  readonly occurred_at: string;
  readonly counter?: string;
  readonly data: JsonObject;
  /** How many hooks were to get it when it came. */
  readonly hooks?: number;
  readonly hook?: string;
  readonly about?: string;
}

/** The type of the events by which Waymark tells of changes of its own records. */
export const recordChanged = 'record.changed';
/** The type of the events by which it tells of what failed. */
export const errorDetected = 'error.detected';
/** The type of the events by which a hook is tried out. */
export const webhookTest = 'webhook.test';

const typeName = /^[a-z][a-z0-9_-]{0,63}(?:\.[a-z][a-z0-9_-]{0,63}){1,7}$/;

/**
 * Whether a text can be the name of an event type: dotted, in lower case
 * (docs/design/webhooks.md#events).
 */
export function isEventType(text: string): boolean {
  return typeName.test(text);
}

/** The families whose changes are told as `record.changed`, under their names as tables. */
const told: ReadonlySet<string> = new Set(['userinterface', 'webhook', 'key']);
/** Fields that are nobody's business, by their names too. */
const hidden: ReadonlySet<string> = new Set(['hash']);

/**
 * The event that a change of the log is or causes; undefined where it causes none. It is made of
 * that row alone, so it is as durable as the change, and the same whenever it is looked at.
 */
export function eventOf(change: Change): WaymarkEvent | undefined {
  const { seq: logSeq, id, family, dtu_stored: stored_at } = change;
  if (family === 'event') {
    const { type, occurred_at, counter, data, hook, about } = change.data as unknown as EventFields;
    return {
      ...{ id, type, occurred_at, counter: counter ?? null, data },
      ...{ logSeq, stored_at, hook, about },
    };
  }
  if (!told.has(family)) return undefined;
  return {
    id: causedEventId(change),
    type: recordChanged,
    occurred_at: change.dtu_txn,
    counter: null,
    data: changedData(change),
    logSeq,
    stored_at,
    hook: undefined,
    about: undefined,
  };
}

/** The id of a batch: the hook's, and the places in its count of the first and the last event. */
export function batchId(hookId: string, first: number, last: number): string {
  return `${hookId}-${first}-${last}`;
}

function causedEventId({ txn, seq }: Change): string {
  return `${txn}-${seq}`;
}

/** Says which record and what of it: to know more, a receiver asks with a key of its own. */
function changedData({ family, id, action, seq, txn, by, data }: Change): JsonObject {
  const fields = Object.keys(data).filter((name) => !hidden.has(name));
  const said = { table: family, id, action, seq, txn, by };
  return action === 'invalidate' ? said : { ...said, fields };
}
