import { parseDateTime } from '../../model/time.ts';
import {
  eventDraft,
  isEventType,
  ownEvent,
  webhookTest,
  type EventFields,
  type WaymarkEvent,
} from '../../model/event.ts';
import { hookTakes, hookWants, placeOf, type Hook, type Node } from '../../model/hook.ts';
import type { JsonObject } from '../../model/json.ts';
import { limitLogMs } from '../../observability/limits.ts';
import { eventDataBytesMax } from '../../webhooks/limits.ts';
import { Failure, type Problem } from '../../model/failure.ts';
import type { Log } from '../../observability/log.ts';
import type { Decision, Reads, Store } from '../../store/store.ts';
import { unfitMembers } from './event-types.ts';
import { eventInsertDescription, testDescription } from './events-description.ts';
import { existingHook, requireNothingWaiting } from './hooks.ts';
import { eventCounterCharactersMax, placeProblemsMax } from './limits.ts';
import { authorOf, type Call, type Handler, type OperationResult } from '../operation.ts';
import { idempotency } from '../records/versions.ts';

/** What the operations on events stand on. */
export interface EventOperations {
  readonly store: Store;
  readonly newId: () => string;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly node: Node;
  readonly log: Log;
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
 * another request). Without a vk, an event that says when it occurred is taken once; the answer
 * always has one, by which the request can be repeated.
 */
export function insertEvent(parts: EventOperations): Handler<InsertInput> {
  const warn = createWarning(parts);
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
      const made = v.occurred_at === undefined ? parts.newId() : `fields:${write.requestHash}`;
      return putEvent(parts, call, { fields, vk: call.vk ?? made, write, warn });
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
      const data = { hook: id, message: 'This is a test.' };
      const fields = ownEvent('webhook.test', data, parts.now(), { hook: id });
      const write = idempotency('webhook.test', { id }, call);
      const vk = call.vk ?? parts.newId();
      return putEvent(parts, call, { fields, vk, write, require: requireActive(id) });
    },
  };
}

/** Throws `not_found` for a hook that is not there, and `conflict` for one that is paused. */
function requireActive(id: string): (reads: Reads) => void {
  return (reads) => {
    const { hook } = existingHook(reads, id);
    requireNothingWaiting(hook);
    if (hook.active) return;
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
    warn,
  }: {
    readonly fields: EventFields;
    readonly vk: string;
    readonly write: ReturnType<typeof idempotency>;
    /** Throws where the event may not be told; not asked of what was told before. */
    readonly require?: (reads: Reads) => void;
    /** Told of hooks that do not get the event, since no node executes them. */
    readonly warn?: Warning;
  },
): Promise<OperationResult> {
  const answer = (
    taken: TakenEvent,
    problems: readonly Problem[],
    replayed: boolean,
  ): OperationResult => {
    const { id, seq, hooks } = taken;
    const unknowns = unfitMembers(fields.type, fields.data);
    return {
      ...{ kind: 'data', data: { id, seq, hooks, unknowns, problems }, vk },
      ...(replayed && { replayed }),
    };
  };
  return store.commit(authorOf(call), (reads): Decision<OperationResult> => {
    const claim = write.earlier(reads, vk);
    const first = claim && reads.change(claim.seq);
    const id = first?.id ?? newId();
    const event = eventWith(reads, { ...fields, id });
    const wanting = hooksWanting(reads, event);
    const elsewhere = wanting.filter((hook) => !hookTakes(hook, event, node));
    const problems = elsewhere.slice(0, placeProblemsMax).map((hook) => placeProblem(hook, event));
    if (first !== undefined) {
      const { hooks = 0 } = first.data as unknown as EventFields;
      return { drafts: [], answer: () => answer({ ...first, hooks }, problems, true) };
    }
    require?.(reads);
    const hooks = wanting.length - elsewhere.length;
    return {
      drafts: [{ ...eventDraft(id, { ...fields, hooks }), vk: write.claim(vk) }],
      answer: ([change]) => {
        if (change === undefined) throw new TypeError('a draft was not logged');
        warn?.(id, problems);
        return answer({ ...change, hooks }, problems, false);
      },
    };
  });
}

type Warning = (eventId: string, problems: readonly Problem[]) => void;

/** Makes a log of events that no node delivers: one line a minute, however many there are. */
function createWarning({ log, now }: Pick<EventOperations, 'log' | 'now'>): Warning {
  let [warnedMs, more] = [-Infinity, 0];
  return (event, [problem]) => {
    if (problem === undefined) return;
    if (Math.abs(now() - warnedMs) < limitLogMs) {
      more += 1;
      return;
    }
    log.warn({ event, ...(more > 0 && { more }) }, problem.message);
    [warnedMs, more] = [now(), 0];
  };
}

interface TakenEvent {
  readonly id: string;
  readonly seq: number;
  readonly hooks: number;
}

function eventWith(
  reads: Reads,
  { type, occurred_at, counter, data, hook, about, id }: EventFields & { readonly id: string },
): WaymarkEvent {
  const logSeq = reads.seq() + 1;
  return {
    ...{ id, type, occurred_at, counter: counter ?? null, data },
    logSeq,
    stored_at: occurred_at,
    hook,
    about,
  };
}

/** The hooks that are to get an event, wherever they are executed. */
function hooksWanting(reads: Reads, event: WaymarkEvent): readonly Hook[] {
  const asked = event.hook === undefined ? reads.hooksFor(event.type) : [reads.hook(event.hook)];
  return asked.flatMap((stored) =>
    stored !== undefined && hookWants(stored.hook, event) ? [stored.hook] : [],
  );
}

/** That no node is known where a hook is executed for an event. */
function placeProblem(hook: Hook, event: WaymarkEvent): Problem {
  const message =
    `The hook ${hook.id} does not get the event: it is executed at ` +
    `${JSON.stringify(placeOf(hook, event))}, and no such node is known.`;
  return { field: event.counter === null ? 'type' : 'counter', reason: 'no_effect', message };
}
