import { parseDateTime } from '../../model/date-time.ts';
import { Failure } from '../../model/failure.ts';
import {
  isEventType,
  webhookTest,
  type EventFields,
  type WaymarkEvent,
} from '../../model/event.ts';
import { hookTakes, type Hook, type Node } from '../../model/hook.ts';
import type { JsonObject } from '../../model/json.ts';
import { eventCounterCharactersMax, eventDataBytesMax } from '../../model/limits.ts';
import type { Decision, Reads, Store } from '../../store/store.ts';
import { unfitMembers } from './event-types.ts';
import { eventInsertDescription, testDescription } from './events-description.ts';
import { existingHook } from './hooks.ts';
import { authorOf, type Call, type Handler, type Outcome } from '../operation.ts';
import { idempotency } from '../rules/versions.ts';

/** What the operations on events stand on. */
export interface EventOperations {
  readonly store: Store;
  readonly newId: () => string;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly node: Node;
}

interface InsertInput {
  type: string;
  data?: JsonObject;
  occurred_at?: string;
  counter?: string;
}

/**
 * event.insert: takes an event, to be told to the hooks that ask for it; answered when it is
 * durable. Refuses with `invalid`, `too_large` (its data), or `conflict` (the vk was used for
 * another request). Without a vk, an event that says when it occurred is taken once.
 */
export function insertEvent(parts: EventOperations): Handler<InsertInput> {
  return {
    ...eventInsertDescription,
    input: {
      type: 'object',
      required: ['type'],
      properties: {
        type: { type: 'string' },
        data: { type: 'object', nullable: true, required: [], additionalProperties: true },
        occurred_at: { type: 'string', nullable: true },
        counter: {
          type: 'string',
          nullable: true,
          minLength: 1,
          maxLength: eventCounterCharactersMax,
        },
      },
    },
    run: (v, call) => {
      const now = new Date(parts.now()).toISOString();
      const fields = eventFields(v, now);
      const write = idempotency('event.insert', { ...v }, call);
      // An event of now is another one each time it is told.
      const derived = v.occurred_at === undefined ? undefined : `fields:${write.requestHash}`;
      return putEvent(parts, call, { fields, vk: call.vk ?? derived, write });
    },
  };
}

/**
 * webhook.test: an event of the type webhook.test for one hook, by the way that all deliveries
 * take. Refuses with `not_found`, or with `conflict` for a hook that is paused.
 */
export function testHook(parts: EventOperations): Handler<{ id: string }> {
  return {
    ...testDescription,
    input: { type: 'object', required: ['id'], properties: { id: { type: 'string' } } },
    run: ({ id }, call) => {
      const fields: EventFields = {
        type: webhookTest,
        occurred_at: new Date(parts.now()).toISOString(),
        data: { hook: id, message: 'This is a test.' },
        hook: id,
      };
      const write = idempotency('webhook.test', { id }, call);
      return putEvent(parts, call, { fields, vk: call.vk, write, require: requireActive(id) });
    },
  };
}

/** Throws `not_found` for a hook that is not there, and `conflict` for one that is paused. */
function requireActive(id: string): (reads: Reads) => void {
  return (reads) => {
    if (existingHook(reads, id).hook.active) return;
    throw new Failure('conflict', 'The hook is paused: resume it first.', { field: 'id' });
  };
}

function eventFields(v: InsertInput, now: string): EventFields {
  const { type, data = {}, occurred_at: given, counter } = v;
  if (!isEventType(type) || type === webhookTest) {
    throw new Failure(
      'invalid',
      type === webhookTest
        ? 'An event of this type is made by webhook.test.'
        : 'type has to be a dotted name in lower case, such as sale.completed.',
      { field: 'type' },
    );
  }
  const occurredAt = given === undefined ? now : parseDateTime(given);
  if (occurredAt === undefined) {
    throw new Failure('invalid', 'occurred_at has to be an ISO 8601 date-time.', {
      field: 'occurred_at',
    });
  }
  const bytes = Buffer.byteLength(JSON.stringify(data));
  if (bytes > eventDataBytesMax) {
    throw new Failure('too_large', `data is ${bytes} bytes; at most ${eventDataBytesMax} are.`, {
      field: 'data',
    });
  }
  return { type, occurred_at: occurredAt, data, ...(counter !== undefined && { counter }) };
}

function putEvent(
  { store, newId, node }: EventOperations,
  call: Call,
  {
    fields,
    vk,
    write,
    require,
  }: {
    readonly fields: EventFields;
    readonly vk: string | undefined;
    readonly write: ReturnType<typeof idempotency>;
    /** Throws where the event may not be told; not asked of what was told before. */
    readonly require?: (reads: Reads) => void;
  },
): Promise<Outcome> {
  const answer = (
    { id, seq, hooks }: { readonly id: string; readonly seq: number; readonly hooks: number },
    replayed: boolean,
  ): Outcome => ({
    kind: 'data',
    data: { id, seq, hooks, unknowns: unfitMembers(fields.type, fields.data) },
    ...(vk !== undefined && { vk }),
    ...(replayed && { replayed }),
  });
  return store.commit(authorOf(call), (reads): Decision<Outcome> => {
    const claim = vk === undefined ? undefined : write.earlier(reads, vk);
    const first = claim && reads.change(claim.seq);
    if (first !== undefined) {
      const { hooks = 0 } = first.data as unknown as EventFields;
      return { drafts: [], answer: () => answer({ ...first, hooks }, true) };
    }
    require?.(reads);
    const id = newId();
    const hooks = takers(reads, { ...fields, id, node }).length;
    const data = { ...fields, hooks } as unknown as JsonObject;
    const claimed = vk === undefined ? {} : { vk: { vk, requestHash: write.requestHash } };
    return {
      drafts: [{ family: 'event', id, action: 'insert', data, ...claimed }],
      answer: ([change]) => {
        if (change === undefined) throw new TypeError('a draft was not logged');
        return answer({ ...change, hooks }, false);
      },
    };
  });
}

/** The hooks that are to get an event. */
function takers(
  reads: Reads,
  { id, node, ...fields }: EventFields & { readonly id: string; readonly node: Node },
): readonly Hook[] {
  const event: WaymarkEvent = {
    id,
    type: fields.type,
    occurred_at: fields.occurred_at,
    counter: fields.counter ?? null,
    data: fields.data,
    logSeq: reads.seq() + 1,
    stored_at: fields.occurred_at,
    hook: fields.hook,
    about: fields.about,
  };
  const asked = fields.hook === undefined ? reads.hooksFor(fields.type) : [reads.hook(fields.hook)];
  return asked.flatMap((stored) =>
    stored !== undefined && hookTakes(stored.hook, event, node) ? [stored.hook] : [],
  );
}
