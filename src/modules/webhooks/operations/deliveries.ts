import { batchId } from '../../../core/log/events/event.ts';
import type { Store } from '../../../core/log/store.ts';
import { listRowsDefault, listRowsMax } from '../../../core/operations/limits.ts';
import { defineOperation } from '../../../core/operations/operation.ts';
import { Failure } from '../../../core/values/failure.ts';
import { isJsonObject } from '../../../core/values/json/json.ts';
import type { StaticOutput } from '../../../core/values/json/static.ts';
import { type Caller, hasScope } from '../../../core/values/key.ts';
import { KIB } from '../../../core/values/units.ts';
import { type NumberedAttempt, type QueueKey, attemptOutcomes } from '../log/deliveries.ts';
import { noSuchHook } from './hook-family.ts';
import { deliveriesPart } from '../log/delivery-log.ts';
import { nodesPart } from '../../nodes/log/node-states.ts';

/** Attempts that are examined for one page of a list. */
const deliveriesExaminedMax = 10_000;

/** Characters of an answer in the list of attempts; the answer for one message has all of it. */
const listedAnswerCharactersMax = KIB;

const integer = { type: 'integer' } as const;

/** The members that identify a message. */
export const messageProperties = {
  id: { type: 'string', description: 'The id of the message, as its receiver gets it.' },
  seq: {
    ...integer,
    description: 'Its number among the messages of the hook; of a batch, the first.',
  },
  last_seq: { ...integer, description: 'Of a batch, the last.' },
} as const;

/** The members of an attempt, without those of its message. */
export const attemptProperties = {
  attempt: { ...integer, description: 'The number of the attempt, from 1.' },
  at: { type: 'string', format: 'date-time', description: 'When the attempt began.' },
  status: { ...integer, description: 'HTTP status of the answer, if there was one.' },
  outcome: { type: 'string', enum: attemptOutcomes },
  error: { type: 'string', description: 'Why the attempt failed.' },
  ms: { ...integer, description: 'Its duration.' },
} as const;

/** The members of an attempt that every answer about it has. */
type AttemptFacts = StaticOutput<{
  readonly type: 'object';
  readonly required: readonly ['attempt', 'at', 'outcome', 'ms'];
  readonly properties: typeof attemptProperties;
}>;

/** The member that says when the next attempt at a message begins. */
export const nextAttemptMember = {
  type: 'string',
  format: 'date-time',
  description: 'When the next attempt begins, at the earliest; of the newest attempt only.',
} as const;

const output = {
  title: 'DeliveryList',
  type: 'object',
  required: ['rows', 'next', 'queued', 'waiting', 'nodes'],
  properties: {
    rows: {
      type: 'array',
      items: {
        title: 'Attempt',
        type: 'object',
        required: ['id', 'seq', 'attempt', 'at', 'outcome', 'ms'],
        properties: {
          ...messageProperties,
          ...attemptProperties,
          answer: { type: 'string', description: 'The first KiB of the answer’s content.' },
          next_attempt: nextAttemptMember,
        },
      },
    },
    next: {
      type: ['integer', 'null'],
      description: 'Send it as before to get the next page; null at the end.',
    },
    queued: { ...integer, description: 'Number of messages without an attempt.' },
    waiting: {
      ...integer,
      description: 'Number of messages that wait for another attempt, at most 1,000.',
    },
    nodes: {
      type: 'array',
      description: 'The nodes that deliver the hook themselves, as each has reported last.',
      items: {
        title: 'NodeQueue',
        type: 'object',
        required: ['node', 'reported', 'newest', 'queued', 'waiting'],
        properties: {
          node: { type: 'string' },
          reported: { type: 'string', format: 'date-time' },
          newest: { ...integer, description: 'The seq of its newest message.' },
          queued: { ...integer, description: 'Number of messages without an attempt.' },
          waiting: { ...integer, description: 'Number of messages that wait for an attempt.' },
          outcome: { type: 'string', enum: [...attemptOutcomes, 'frozen'] },
          at: { type: 'string', description: 'When its newest attempt began.' },
        },
      },
    },
  },
} as const;

type DeliveryList = StaticOutput<typeof output>;
type NodeQueue = Omit<DeliveryList['nodes'][number], 'node' | 'reported'>;

/**
 * webhook.deliveries: the attempts at a hook's messages, the newest messages first, also of a
 * deleted hook. A page has all attempts at the messages that it shows. Refuses with `not_found`.
 */
export const listDeliveries = defineOperation({
  name: 'svc1.webhook.deliveries',
  scope: 'webhook',
  forHookKeys: true,
  effect: 'reads',
  summary: 'The attempts at the messages of a hook, the newest messages first.',
  output,
  failures: ['not_found'],
  input: {
    type: 'object',
    required: ['id'],
    properties: {
      id: { type: 'string', description: 'The id of the hook.' },
      outcome: { type: 'string', enum: attemptOutcomes, nullable: true },
      before: {
        type: 'integer',
        minimum: 1,
        nullable: true,
        description: 'The next of the page before: only messages before this seq.',
      },
      limit: { type: 'integer', minimum: 1, maximum: listRowsMax, nullable: true },
    },
  },
  run:
    ({ store }: { readonly store: Store }) =>
    ({ id, outcome, before, limit = listRowsDefault }, { caller }) => {
      requireHookScope(caller, id);
      const deliveries = store.part(deliveriesPart);
      const queue = queueOf(store, id);
      const rows: ReturnType<typeof attemptView>[] = [];
      let [next, examined] = [null as number | null, 0];
      let last: number | undefined;
      for (const row of deliveries.attempts(queue, before)) {
        const isFull = rows.length >= limit || examined >= deliveriesExaminedMax;
        if (isFull && row.n !== last) {
          next = last ?? null;
          break;
        }
        examined += 1;
        const isNewest = row.n !== last;
        last = row.n;
        if (!isMade(row)) continue;
        if (outcome === undefined || row.outcome === outcome)
          rows.push(attemptView(store, id, { row, isNewest }));
      }
      const nodes = hasScope(caller, 'webhook') ? queuesElsewhere(store, id) : [];
      return { kind: 'data', data: { rows, next, ...deliveries.depth(queue), nodes } };
    },
});

/** The queues that other nodes have for a hook, by their last reports. */
function queuesElsewhere({ part }: Pick<Store, 'part'>, id: string): DeliveryList['nodes'] {
  const nodes = part(nodesPart);
  return nodes.all().flatMap(({ name, last_contact: reported, deliveries = {} }) => {
    const queue = Object.hasOwn(deliveries, id) ? deliveries[id] : undefined;
    // The node has sent it, so that its members are what its version has.
    return isJsonObject(queue)
      ? [{ node: name, reported, ...(queue as unknown as NodeQueue) }]
      : [];
  });
}

/** The queue of a hook, also of a deleted one. Throws `not_found`. */
export function queueOf(store: Pick<Store, 'rows'>, id: string): QueueKey {
  const [insert] = store.rows('webhook', id);
  if (insert === undefined) throw noSuchHook(id);
  return insert.seq;
}

/** Throws `forbidden` for a key of the scope `verify:<hook>` of another hook. */
export function requireHookScope(caller: Caller, id: string): void {
  if (hasScope(caller, 'webhook') || hasScope(caller, `verify:${id}`)) return;
  throw new Failure('forbidden', 'This key may read the deliveries of another webhook only.', {
    field: 'id',
  });
}

/** The members of a message in an answer. */
export function messageView(
  { part }: Pick<Store, 'part'>,
  hook: string,
  { n, logSeqs, batch }: Pick<NumberedAttempt, 'n' | 'logSeqs' | 'batch'>,
): { readonly id: string; readonly seq: number; readonly last_seq?: number } {
  const deliveries = part(deliveriesPart);
  const last = n + logSeqs.length - 1;
  return {
    id: batch ? batchId(hook, n, last) : deliveries.event(logSeqs[0] ?? 0).id,
    seq: n,
    ...(batch && { last_seq: last }),
  };
}

/** An attempt that was made: not a batch that is stored and not sent yet. */
export type MadeAttempt = NumberedAttempt & { readonly outcome: (typeof attemptOutcomes)[number] };

/** Whether an attempt was made. */
export function isMade(row: NumberedAttempt): row is MadeAttempt {
  return row.outcome !== 'frozen';
}

/** The members of an attempt in an answer, without those of its message and of its receiver. */
export function attemptFacts({
  attempt,
  at,
  status,
  outcome,
  error,
  ms,
}: MadeAttempt): AttemptFacts {
  return {
    ...{ attempt, at, outcome, ms },
    ...(status !== undefined && { status }),
    ...(error !== undefined && { error }),
  };
}

function attemptView(
  store: Pick<Store, 'part'>,
  hook: string,
  { row, isNewest }: { readonly row: MadeAttempt; readonly isNewest: boolean },
): DeliveryList['rows'][number] {
  const { answer, dueAt } = row;
  return {
    ...messageView(store, hook, row),
    ...attemptFacts(row),
    ...(answer !== undefined && { answer: answer.slice(0, listedAnswerCharactersMax) }),
    ...(isNewest && dueAt !== undefined && { next_attempt: dueAt }),
  };
}
