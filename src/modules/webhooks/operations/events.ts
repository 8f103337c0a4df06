import {
  type EventFields,
  type WaymarkEvent,
  eventDraft,
  ownEvent,
  tableOf,
  webhookTest,
} from '../../../core/log/events/event.ts';
import type { Decision, Reads, Store, StoredVkClaim } from '../../../core/log/store.ts';
import {
  type Call,
  type OperationResult,
  authorOf,
  changeAuthorOf,
  defineOperation,
} from '../../../core/operations/operation.ts';
import { problemsMember } from '../../../core/operations/problems.ts';
import {
  type RequestIdentity,
  hasDerivedVk,
  identifyRequest,
  isRecentTxn,
  repeatWindowMs,
} from '../../../core/operations/records/idempotency.ts';
import { vkMember } from '../../../core/operations/records/schema.ts';
import { limitLogMs } from '../../../core/report/limits.ts';
import type { Log } from '../../../core/report/log.ts';
import { isEventType } from '../../../core/values/event-type.ts';
import { Failure, type Problem } from '../../../core/values/failure.ts';
import type { JsonObject } from '../../../core/values/json/json.ts';
import type { StaticInput, StaticOutput } from '../../../core/values/json/static.ts';
import { instantText, parseExactDateTime } from '../../../core/values/time.ts';
import { type OutboxClaim, eventInsert } from '../../nodes/log/outbox.ts';
import { type Hook, type Node, hookMatches, isDeliveredOn, placeOf } from '../hook.ts';
import type { EventTypes } from '../event-types.ts';
import { eventDataBytesMax } from '../limits.ts';
import { unfitMembers } from './event-types.ts';
import { existingHook, requireNothingWaiting } from './hook-family.ts';
import { knownNodes } from './hook-placement.ts';
import { outboxPart } from '../../nodes/log/outbox-entries.ts';
import { storedHooks } from '../log/family.ts';

/** Hooks in the answer to an event that do not get it, because no node executes them. */
const placeProblemsMax = 10;
const eventCounterCharactersMax = 253;

/** The parts that the operations on events need. */
export interface EventParts {
  readonly store: Store;
  readonly newId: () => string;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly node: Node;
  /** Whether this node stores events in its outbox, because its centre decides about them. */
  readonly queuesEvents: boolean;
  readonly eventTypes: EventTypes;
  readonly log: Log;
}

const text = { type: 'string' } as const;
const counterLengths = { minLength: 1, maxLength: eventCounterCharactersMax } as const;

const output = {
  title: 'TakenEvent',
  type: 'object',
  required: ['id', 'seq', 'hooks', 'unknowns', 'problems'],
  properties: {
    id: { ...text, description: 'The id of the event, which deliveries have, too.' },
    seq: {
      type: ['integer', 'null'],
      description: 'Position in the log; null at a counter, until the centre has stored it.',
    },
    hooks: { type: 'integer', description: 'Number of hooks that get the event.' },
    unknowns: {
      type: 'array',
      items: text,
      description: 'Members of data that do not fit the schema in event.types. Hooks get them.',
    },
    problems: problemsMember,
  },
} as const;

type TakenEvent = OperationResult<StaticOutput<typeof output>>;

const eventInput = {
  type: 'object',
  required: ['type'],
  properties: {
    type: text,
    data: { type: 'object', nullable: true, required: [], additionalProperties: true },
    occurred_at: { type: 'string', nullable: true },
    counter: { type: 'string', nullable: true, ...counterLengths },
  },
} as const;

type EventInput = StaticInput<typeof eventInput>;

/**
 * event.insert: stores an event, which the hooks for its type deliver; answers when it is durable.
 * Refuses with `invalid` (also for data that breaks the schema of a type of the ini file),
 * `too_large` (its data), or `conflict` (the vk was used for another
 * request). Without a vk, an event with `occurred_at` is stored once, and another one once within
 * a minute. The answer always has a vk, with which the caller can repeat the request safely.
 */
export const insertEvent = defineOperation({
  name: 'svc1.event.insert',
  scope: 'event',
  effect: 'writes',
  summary: 'Stores an event, which the hooks for its type deliver; answers when it is durable.',
  input: eventInput,
  fields: {
    title: 'NewEvent',
    type: 'object',
    required: ['type'],
    properties: {
      type: { ...text, description: 'Such as sale.completed: dotted, in lower case.' },
      data: {
        type: 'object',
        additionalProperties: true,
        description: 'The data that receivers get.',
      },
      occurred_at: { ...text, format: 'date-time', description: 'The current time by default.' },
      counter: {
        ...text,
        ...counterLengths,
        description: 'The trading counter at which it happened.',
      },
    },
  },
  envelope: { vk: vkMember },
  output,
  failures: ['conflict'],
  run: (parts: EventParts) => {
    const warn = createWarning(parts);
    return (v, call) => {
      const now = new Date(parts.now()).toISOString();
      const fields = eventFields(v, now);
      const request = eventRequest(v, call);
      const repeatsForMs =
        call.vk === undefined && v.occurred_at === undefined ? repeatWindowMs : Infinity;
      const wanted = { fields, vk: call.vk ?? request.derivedVk, request, repeatsForMs };
      if (parts.queuesEvents) return takeEvent(parts, call, wanted);
      const check = (): void => {
        parts.eventTypes.requireFit(fields.type, fields.data);
      };
      return putEvent(parts, call, { ...wanted, check, warn });
    };
  },
});

/**
 * webhook.test: stores an event of the type webhook.test for one hook, which delivers it as any
 * other. Refuses with `not_found`, or with `conflict` for a hook that is paused.
 */
export const testHook = defineOperation({
  name: 'svc1.webhook.test',
  scope: 'webhook',
  effect: 'writes',
  summary: 'Sends a hook an event of the type webhook.test, in the way of all other events.',
  input: { type: 'object', required: ['id'], properties: { id: text } },
  envelope: { vk: vkMember },
  output,
  failures: ['not_found', 'conflict'],
  run:
    (parts: EventParts) =>
    ({ id }, call) => {
      const data = { hook: id, message: 'This is a test.' };
      const fields = ownEvent('webhook.test', data, parts.now(), { hook: id });
      const request = identifyRequest('webhook.test', { id }, call);
      const vk = call.vk ?? parts.newId();
      return putEvent(parts, call, { fields, vk, request, check: requireActive(id) });
    },
});

/** Throws `not_found` for an unknown hook, and `conflict` for a paused one. */
function requireActive(id: string): (reads: Reads) => void {
  return (reads) => {
    const { hook } = existingHook(reads, id);
    requireNothingWaiting(hook);
    if (hook.active) return;
    throw new Failure('conflict', 'The hook is paused. Resume it first.', { field: 'id' });
  };
}

/**
 * The identity of an event without a vk: its fields, and without a time also its author, because
 * two of them may report the same.
 */
function eventRequest(v: EventInput, call: Call): RequestIdentity {
  const isOfAuthor = v.occurred_at === undefined && hasDerivedVk(call);
  const identity = isOfAuthor ? { author: authorOf(call) } : undefined;
  const occurredAt = v.occurred_at === undefined ? undefined : instantText(v.occurred_at);
  if (occurredAt === undefined)
    return identifyRequest('event.insert', { ...v }, call, { identity });
  const values = { ...v, occurred_at: occurredAt };
  return identifyRequest('event.insert', values, call, { formerInput: { ...v } });
}

function eventFields(v: EventInput, now: string): EventFields {
  const { type, data = {}, occurred_at: given, counter } = v;
  if (!isEventType(type) || type === webhookTest) {
    throw new Failure(
      'invalid',
      type === webhookTest
        ? 'Only webhook.test makes events of this type.'
        : 'type has to be a dotted name in lower case, such as sale.completed.',
      { field: 'type' },
    );
  }
  const occurredAt = given === undefined ? now : parseExactDateTime(given);
  if (occurredAt === undefined) {
    throw new Failure('invalid', 'occurred_at has to be an ISO 8601 date-time.', {
      field: 'occurred_at',
    });
  }
  const bytes = Buffer.byteLength(JSON.stringify(data));
  if (bytes > eventDataBytesMax) {
    throw new Failure('too_large', `data has ${bytes} bytes; the limit is ${eventDataBytesMax}.`, {
      field: 'data',
    });
  }
  return { type, occurred_at: occurredAt, data, ...(counter !== undefined && { counter }) };
}

function putEvent(
  { store, newId, node, now, eventTypes }: EventParts,
  call: Call,
  {
    fields,
    vk,
    request,
    check,
    warn,
    repeatsForMs = Infinity,
  }: {
    readonly fields: EventFields;
    readonly vk: string;
    readonly request: RequestIdentity;
    /** Throws if the event may not be stored; not called for a repeated request. */
    readonly check?: (reads: Reads) => void;
    /** Logs the hooks that do not get the event because no node executes them. */
    readonly warn?: Warning;
    /** How long a repeat of the request is no second event. */
    readonly repeatsForMs?: number;
  },
): Promise<TakenEvent> {
  const answer = (
    stored: StoredEvent,
    problems: readonly Problem[],
    replayed: boolean,
  ): TakenEvent => {
    const { id, seq, hooks } = stored;
    const unknowns = unfitMembers(eventTypes, fields);
    return {
      kind: 'data',
      data: { id, seq, hooks, unknowns, problems },
      vk,
      ...(replayed && { replayed }),
    };
  };
  return store.commit(changeAuthorOf(call), (reads): Decision<TakenEvent> => {
    const claim = request.earlier(reads, vk);
    const claimed = claim && reads.change(claim.seq);
    const first = isRecentTxn(claimed?.dtu_txn, now(), repeatsForMs) ? claimed : undefined;
    const id = first?.id ?? newId();
    const event = eventWith(reads, { ...fields, id });
    const wanting = hooksWanting(reads, event);
    const lost = undelivered(wanting, event, { node, store });
    const unplaced = lost.slice(0, placeProblemsMax).map((hook) => placeProblem(hook, event));
    const problems = [...typeProblems(eventTypes, event, reads), ...unplaced];
    if (first !== undefined) {
      const { hooks = 0 } = first.data as unknown as EventFields;
      return { drafts: [], answer: () => answer({ ...first, hooks }, problems, true) };
    }
    check?.(reads);
    const hooks = wanting.length - lost.length;
    return {
      drafts: [{ ...eventDraft(id, { ...fields, hooks }), vk: request.claim(vk) }],
      answer: ([change]) => {
        if (change === undefined) throw new TypeError('the store logged no change');
        warn?.(id, unplaced);
        return answer({ ...change, hooks }, problems, false);
      },
    };
  });
}

/** Stores an event in the outbox of this node. */
async function takeEvent(
  { store, newId, node, now, eventTypes }: EventParts,
  call: Call,
  {
    fields,
    vk,
    request,
    repeatsForMs,
  }: {
    readonly fields: EventFields;
    readonly vk: string;
    readonly request: RequestIdentity;
    readonly repeatsForMs: number;
  },
): Promise<TakenEvent> {
  const taken: EventFields = { ...fields, counter: fields.counter ?? node.name, node: node.name };
  let answered: { readonly id: string; readonly seq: number | null } | undefined;
  const entry = await store.part(outboxPart).put((earlier) => {
    let dtuTxn: string | undefined;
    const vkClaim = (name: string): StoredVkClaim | undefined => {
      const claim = earlier(name);
      dtuTxn = claim?.dtu_txn ?? dtuTxn;
      return asClaim(name, claim);
    };
    const claimed = request.earlier({ vkClaim }, vk);
    const first = isRecentTxn(dtuTxn, now(), repeatsForMs) ? claimed : undefined;
    if (first !== undefined) {
      answered = { id: first.id, seq: first.seq === 0 ? null : first.seq };
      return undefined;
    }
    eventTypes.requireFit(fields.type, fields.data);
    return {
      ...{ id: newId(), a: eventInsert, v: { ...taken }, by: authorOf(call) },
      ...{ dtu_txn: new Date(now()).toISOString(), vk: request.claim(vk) },
    };
  });
  const { id, seq } = answered ?? { id: entry?.id ?? '', seq: null };
  const event = eventWith(store, { ...taken, id });
  const hooks = hooksWanting(store, event).filter((hook) => isDeliveredOn(hook, event, node));
  const unknowns = unfitMembers(eventTypes, fields);
  const problems = typeProblems(eventTypes, event, store);
  return {
    kind: 'data',
    data: { id, seq, hooks: hooks.length, unknowns, problems },
    vk,
    ...(answered !== undefined && { replayed: true }),
  };
}

function asClaim(vk: string, claim: OutboxClaim | undefined): StoredVkClaim | undefined {
  return claim && { vk, requestHash: claim.requestHash, id: claim.id, by: '', seq: claim.seq ?? 0 };
}

/**
 * Stores an event that a node took, once; resolves to its seq. Rejects with `invalid` or
 * `too_large` for an event that event.insert refuses, and with `conflict` for the id of another.
 */
export function storeTakenEvent(
  { store, node: here, eventTypes }: Pick<EventParts, 'store' | 'node' | 'eventTypes'>,
  taken: {
    readonly node: string;
    readonly id: string;
    readonly v: JsonObject;
    readonly by: string;
    readonly dtu_txn: string;
  },
): Promise<number> {
  const { node, id, v, by, dtu_txn } = taken;
  const { about } = v;
  const fields: EventFields = {
    ...eventFields(v as unknown as EventInput, dtu_txn),
    ...{ node, ...(typeof about === 'string' && { about }) },
  };
  const vk = { vk: `node:${node}\n${id}`, requestHash: '' };
  return store.commit(by, (reads): Decision<number> => {
    const earlier = reads.vkClaim(vk.vk);
    if (earlier !== undefined) return { drafts: [], answer: () => earlier.seq };
    eventTypes.requireFit(fields.type, fields.data);
    if (reads.rows('event', id).length > 0) {
      throw new Failure('conflict', 'Another event has this id.', { field: 'id' });
    }
    const event = eventWith(reads, { ...fields, id });
    const wanting = hooksWanting(reads, event);
    const hooks = wanting.length - undelivered(wanting, event, { node: here, store }).length;
    return {
      drafts: [{ ...eventDraft(id, { ...fields, hooks }), vk }],
      dtu_txn,
      answer: ([change]) => change?.seq ?? 0,
    };
  });
}

/** The hooks that no known node delivers an event to. */
function undelivered(
  hooks: readonly Hook[],
  event: WaymarkEvent,
  { node, store }: Pick<EventParts, 'node' | 'store'>,
): readonly Hook[] {
  const elsewhere = hooks.filter((hook) => !isDeliveredOn(hook, event, node));
  if (elsewhere.length === 0) return [];
  const nodes = knownNodes(node, store);
  return elsewhere.filter((hook) => !nodes.some((one) => isDeliveredOn(hook, event, one)));
}

type Warning = (eventId: string, problems: readonly Problem[]) => void;

/** Makes a warning about events that no node delivers: at most one line a minute. */
function createWarning({ log, now }: Pick<EventParts, 'log' | 'now'>): Warning {
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

interface StoredEvent {
  readonly id: string;
  readonly seq: number;
  readonly hooks: number;
}

function eventWith(
  reads: Reads,
  { id, ...fields }: EventFields & { readonly id: string },
): WaymarkEvent {
  const { type, occurred_at, counter, data, hook, about } = fields;
  const logSeq = reads.seq() + 1;
  return {
    ...{ id, type, occurred_at, counter: counter ?? null, data, table: tableOf(fields) },
    logSeq,
    stored_at: occurred_at,
    hook,
    about,
  };
}

/** The hooks for an event, on whichever node they are executed. */
function hooksWanting(reads: Reads, event: WaymarkEvent): readonly Hook[] {
  const asked =
    event.hook === undefined
      ? reads.of(storedHooks).hooksFor(event.type)
      : [reads.of(storedHooks).hook(event.hook)];
  return asked.flatMap((stored) =>
    stored !== undefined && hookMatches(stored.hook, event) ? [stored.hook] : [],
  );
}

/** The problem of an event whose type nothing knows and no hook names. */
function typeProblems(
  types: EventTypes,
  { type }: WaymarkEvent,
  reads: Pick<Reads, 'of'>,
): readonly Problem[] {
  const problem = types.problemOf(type, 'type');
  if (problem === undefined) return [];
  const isNamed = reads
    .of(storedHooks)
    .hooksFor(type)
    .some(({ hook }) => hook.event.includes(type));
  return isNamed ? [] : [problem];
}

/** The problem that no known node executes a hook for an event. */
function placeProblem(hook: Hook, event: WaymarkEvent): Problem {
  const message =
    `The hook ${hook.id} does not get the event: it is executed at ` +
    `${JSON.stringify(placeOf(hook, event))}, and no such node is known.`;
  return { field: event.counter === null ? 'type' : 'counter', reason: 'no_effect', message };
}
