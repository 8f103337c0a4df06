import type { Change, Draft, Family } from '../change.ts';
import type { EventData, OwnEventType } from './event-types.ts';
import type { JsonObject } from '../../values/json/json.ts';

/** An event, as the hooks get it (docs/design/webhooks.md#events). */
export interface WaymarkEvent {
  /** The same for each hook and at each attempt. */
  readonly id: string;
  readonly type: string;
  /** ISO 8601, UTC. */
  readonly occurred_at: string;
  /** The counter where it occurred; null for none. */
  readonly counter: string | null;
  readonly data: JsonObject;
  /** The table of the record that the event is about; undefined if it is about none. */
  readonly table: string | undefined;
  /** Position in the log of the change that is or causes the event. */
  readonly logSeq: number;
  /** The time at which that change was stored, ISO 8601, UTC. */
  readonly stored_at: string;
  /** The id of the only hook that gets the event: a test of that hook. */
  readonly hook: string | undefined;
  /** The id of the hook that the event reports on. That hook does not get it. */
  readonly about: string | undefined;
  /** The name of the node that took it for its centre; undefined if the centre did. */
  readonly node?: string | undefined;
}

/** The fields of an event as the log has them. */
export interface EventFields {
  readonly type: string;
  readonly occurred_at: string;
  readonly counter?: string;
  readonly data: JsonObject;
  /** The table of the record that it is about, if that table declares it. */
  readonly table?: string;
  /** The number of hooks for it when it was inserted. */
  readonly hooks?: number;
  /** The id of the only hook that gets it. */
  readonly hook?: string;
  /** The id of the hook that it reports on, which does not get it. */
  readonly about?: string;
  /** The name of the node that took it for its centre. */
  readonly node?: string;
}

/** The type of the event that each change of a record causes. */
const recordChangedType = 'record.changed' satisfies OwnEventType;
/** The type of the event that tests a hook. */
export const webhookTest = 'webhook.test' satisfies OwnEventType;
/** The type of the events that report failures. */
export const errorDetected = 'error.detected' satisfies OwnEventType;

/** The fields of an event that Waymark raises itself. */
export function ownEvent<Type extends OwnEventType>(
  type: Type,
  data: EventData<Type>,
  occurredMs: number,
  hooks: Pick<EventFields, 'hook' | 'about'> = {},
): EventFields {
  return { type, occurred_at: new Date(occurredMs).toISOString(), data, ...hooks };
}

/**
 * The row of the log that is an event. A decision to write (`Store.commit`) may add it to its own
 * rows: the event is then as durable as they are.
 */
export function eventDraft(id: string, fields: EventFields): Draft {
  return { family: 'event', id, action: 'insert', data: { ...fields } };
}

/** An event that each change of a family causes. */
interface DerivedEvent<Type extends OwnEventType> {
  readonly type: Type;
  readonly data: (change: Change) => EventData<Type>;
}

const recordChanged: DerivedEvent<'record.changed'> = {
  type: recordChangedType,
  data: changedRecord,
};

/**
 * The events that changes cause, by family. A change causes at most one: the queues of the hooks
 * identify an event by the seq of its change.
 */
const derivedEvents: Readonly<Partial<Record<Family, DerivedEvent<OwnEventType>>>> = {
  userinterface: recordChanged,
  webhook: recordChanged,
  key: recordChanged,
  table: recordChanged,
  record: recordChanged,
};

/** The type of the event that each change of a family causes; undefined for none. */
export function derivedEventType(family: Family): OwnEventType | undefined {
  return derivedEvents[family]?.type;
}

/**
 * The event that a change of the log is or causes; undefined for none. It depends on that row
 * alone, so it is as durable as the change, and the same at each reading.
 */
export function eventOf(change: Change): WaymarkEvent | undefined {
  const { seq: logSeq, id, family, dtu_stored: stored_at } = change;
  if (family === 'event') {
    const fields = change.data as unknown as EventFields;
    const { type, occurred_at, counter, data, hook, about, node } = fields;
    return {
      ...{ id, type, occurred_at, counter: counter ?? null, data, table: tableOf(fields) },
      ...{ logSeq, stored_at, hook, about, ...(node !== undefined && { node }) },
    };
  }
  const derived = derivedEvents[family];
  if (derived === undefined) return undefined;
  const data = derived.data(change);
  return {
    id: `${change.txn}-${logSeq}`,
    type: derived.type,
    occurred_at: change.dtu_txn,
    counter: null,
    data,
    table: tableOf({ type: derived.type, data }),
    logSeq,
    stored_at,
    hook: undefined,
    about: undefined,
  };
}

/** The table of an event: the one that declares it, or the one that a `record.changed` names. */
export function tableOf({
  type,
  data,
  table,
}: Pick<EventFields, 'type' | 'data' | 'table'>): string | undefined {
  if (table !== undefined || type !== recordChangedType) return table;
  return typeof data.table === 'string' ? data.table : undefined;
}

/** The id of a batch: the hook's id, and the numbers of its first and last event in its count. */
export function batchId(hookId: string, first: number, last: number): string {
  return `${hookId}-${first}-${last}`;
}

/** Fields whose names are confidential, too. */
const hiddenFields: ReadonlySet<string> = new Set(['hash']);

/** Names the record and its changed fields. Receivers read the values with their own keys. */
function changedRecord(change: Change): EventData<'record.changed'> {
  const { family, id, action, seq, txn, by, data } = change;
  const isRow = family === 'record';
  const record = { table: isRow ? (data.table as string) : family, id, action, seq, txn, by };
  if (action === 'invalidate') return record;
  // In the data of a row, `table` is no field, but the table of the row.
  const fields = Object.keys(data).filter(
    (name) => !hiddenFields.has(name) && !(isRow && name === 'table'),
  );
  return { ...record, fields };
}
