import type { Store } from '../../../core/log/store.ts';
import { defineOperation } from '../../../core/operations/operation.ts';
import { type StoredHook, isDelivered } from '../hook.ts';
import { type NumberedAttempt, attemptOutcomes } from '../log/deliveries.ts';
import { nextBatchAt } from '../next-batch.ts';
import { type MadeAttempt, attemptFacts, attemptProperties, isMade } from './deliveries.ts';
import { existingHook } from './hook-family.ts';
import { deliveriesPart } from '../log/delivery-log.ts';
import { storedHooks } from '../log/family.ts';

/** Newest attempts of a hook by which webhook.health judges it. */
const healthAttemptsMax = 20;

/** Hooks in one answer of webhook.health. */
const healthRowsMax = 200;

const integer = { type: 'integer' } as const;
const text = { type: 'string' } as const;

/** The states of a hook: `idle` has made no attempt yet. */
const states = ['idle', 'healthy', 'failing', 'paused'] as const;

const output = {
  title: 'HookHealthList',
  type: 'object',
  required: ['rows', 'next'],
  properties: {
    rows: {
      type: 'array',
      items: {
        title: 'HookHealth',
        type: 'object',
        required: ['id', 'url', 'method', 'event', 'state', 'seq', 'queued', 'waiting', 'recent'],
        properties: {
          id: text,
          name: text,
          url: text,
          method: text,
          event: { type: 'array', items: text },
          state: {
            ...text,
            enum: states,
            description: 'failing if its newest attempt failed, idle if there is none.',
          },
          seq: { ...integer, description: 'Number of its newest message; 0 for none.' },
          queued: { ...integer, description: 'Number of messages without an attempt.' },
          waiting: { ...integer, description: 'Number of messages that wait for a retry.' },
          oldest: { ...text, description: 'When its oldest undelivered event was stored.' },
          next_batch: {
            ...text,
            description: 'When its next batch leaves, if the hook has batches.',
          },
          recent: {
            type: 'object',
            required: ['attempts', 'failed', 'ms'],
            description: `Its attempts at the newest messages, at most ${healthAttemptsMax}.`,
            properties: {
              attempts: integer,
              failed: integer,
              ms: { ...integer, description: 'Their median duration.' },
            },
          },
          last: {
            type: 'object',
            description: 'The newest of these attempts.',
            properties: { ...attemptProperties, outcome: { ...text, enum: attemptOutcomes } },
          },
        },
      },
    },
    next: { type: ['string', 'null'], description: 'The after of the next page.' },
  },
} as const;

/**
 * webhook.health: the state of each hook, with the length of its queue and how its newest attempts
 * ended. Refuses with `not_found` for an unknown id.
 */
export const listHealth = defineOperation({
  name: 'svc1.webhook.health',
  scope: 'webhook',
  effect: 'reads',
  summary: 'The state of hooks: how the newest attempts ended, and what waits.',
  output,
  failures: ['not_found'],
  input: {
    type: 'object',
    properties: {
      id: { type: 'string', nullable: true, description: 'Only this hook.' },
      after: { type: 'string', nullable: true, description: 'The next of the page before.' },
      limit: { type: 'integer', minimum: 1, maximum: healthRowsMax, nullable: true },
    },
  },
  run:
    ({ store, now }: { readonly store: Store; readonly now: () => number }) =>
    ({ id, after = '', limit = healthRowsMax }) => {
      const nowMs = now();
      if (id !== undefined) {
        const rows = [healthOf(store, existingHook(store, id), nowMs)];
        return { kind: 'data', data: { rows, next: null } };
      }
      const rows: ReturnType<typeof healthOf>[] = [];
      let [next, last] = [null as string | null, ''];
      for (const stored of store.of(storedHooks).hooksAfter(after)) {
        if (rows.length === limit) {
          next = last;
          break;
        }
        rows.push(healthOf(store, stored, nowMs));
        last = stored.hook.id;
      }
      return { kind: 'data', data: { rows, next } };
    },
});

function healthOf({ part }: Pick<Store, 'part'>, stored: StoredHook, nowMs: number) {
  const deliveries = part(deliveriesPart);
  const { hook, insertedSeq } = stored;
  const recent = newestAttempts(deliveries.attempts(insertedSeq, undefined));
  const failed = recent.filter(hasFailed);
  const [last] = recent.toSorted((one, other) => (one.at < other.at ? 1 : -1));
  const durations = recent.map(({ ms }) => ms).toSorted((one, other) => one - other);
  const { id, name, url, method, event } = hook;
  const oldest = deliveries.oldest(insertedSeq)?.stored_at;
  const nextBatch = nextBatchAt(stored, deliveries, nowMs);
  return {
    ...{ id, url, method, event },
    ...(name !== undefined && { name }),
    state: isDelivered(hook) ? stateAfter(last) : 'paused',
    seq: deliveries.newest(insertedSeq),
    ...deliveries.depth(insertedSeq),
    ...(oldest !== undefined && { oldest }),
    ...(nextBatch !== undefined && { next_batch: nextBatch }),
    recent: {
      attempts: recent.length,
      failed: failed.length,
      ms: durations[Math.floor(durations.length / 2)] ?? 0,
    },
    ...(last !== undefined && { last: attemptFacts(last) }),
  };
}

function hasFailed({ outcome }: NumberedAttempt): boolean {
  return !outcome.startsWith('completed');
}

function stateAfter(last: NumberedAttempt | undefined): (typeof states)[number] {
  if (last === undefined) return 'idle';
  return hasFailed(last) ? 'failing' : 'healthy';
}

function newestAttempts(rows: Iterable<NumberedAttempt>): readonly MadeAttempt[] {
  const newest: MadeAttempt[] = [];
  for (const row of rows) {
    if (isMade(row)) newest.push(row);
    if (newest.length === healthAttemptsMax) break;
  }
  return newest;
}
