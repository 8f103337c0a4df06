import { batchId } from '../../model/event.ts';
import type { JsonObject } from '../../model/json.ts';
import { listRowsDefault, listRowsMax } from '../limits.ts';
import { deliveriesExaminedMax } from './limits.ts';
import {
  attemptOutcomes,
  type NumberedAttempt,
  type QueueKey,
} from '../../store/deliveries/deliveries.ts';
import type { Store } from '../../store/store.ts';
import { noSuchHook } from './hooks.ts';
import type { Handler } from '../operation.ts';

interface DeliveriesInput {
  id: string;
  outcome?: string;
  before?: number;
  limit?: number;
}

const integer = { type: 'integer' } as const;

const output: JsonObject = {
  title: 'DeliveryList',
  type: 'object',
  required: ['rows', 'next', 'queued', 'waiting'],
  properties: {
    rows: {
      type: 'array',
      items: {
        title: 'Attempt',
        type: 'object',
        required: ['id', 'seq', 'attempt', 'at', 'outcome', 'ms'],
        properties: {
          id: { type: 'string', description: 'What the receiver knows the message by.' },
          seq: {
            ...integer,
            description: 'Its place in the hook’s own count; of a batch, the first.',
          },
          last_seq: { ...integer, description: 'Of a batch, the last.' },
          attempt: { ...integer, description: 'Which attempt at it this was, from 1.' },
          at: { type: 'string', format: 'date-time', description: 'When it began.' },
          status: { ...integer, description: 'Of the answer, if there was one.' },
          outcome: { type: 'string', enum: attemptOutcomes },
          error: { type: 'string', description: 'What went wrong.' },
          ms: { ...integer, description: 'How long it took.' },
          answer: { type: 'string', description: 'The first KiB of the answer’s content.' },
        },
      },
    },
    next: {
      type: ['integer', 'null'],
      description: 'Goes into before for the next page; null at the end.',
    },
    queued: { ...integer, description: 'Messages that have not been tried.' },
    waiting: { ...integer, description: 'Messages that are to be tried again, 1,000 at most.' },
  },
};

/**
 * webhook.deliveries: the attempts at a hook's messages, the newest messages first, also of a hook
 * that is gone. A page has all attempts at the messages that it shows. Refuses with `not_found`.
 */
export function listDeliveries({ store }: { readonly store: Store }): Handler<DeliveriesInput> {
  return {
    summary: 'The attempts at the messages of a hook, the newest messages first.',
    output,
    failures: ['not_found'],
    input: {
      type: 'object',
      required: ['id'],
      properties: {
        id: { type: 'string' },
        outcome: { type: 'string', enum: attemptOutcomes, nullable: true },
        before: {
          type: 'integer',
          minimum: 1,
          nullable: true,
          description: 'The next of the page before: only messages in front of this seq.',
        },
        limit: { type: 'integer', minimum: 1, maximum: listRowsMax, nullable: true },
      },
    },
    run: ({ id, outcome, before, limit = listRowsDefault }) => {
      const { deliveries } = store;
      const queue = queueOf(store, id);
      const rows: object[] = [];
      let [next, examined] = [null as number | null, 0];
      let last: number | undefined;
      for (const row of deliveries.attempts(queue, before)) {
        const isFull = rows.length >= limit || examined >= deliveriesExaminedMax;
        if (isFull && row.n !== last) {
          next = last ?? null;
          break;
        }
        examined += 1;
        last = row.n;
        if (row.outcome === 'frozen') continue;
        if (outcome === undefined || row.outcome === outcome)
          rows.push(attemptView(store, id, row));
      }
      return { kind: 'data', data: { rows, next, ...deliveries.depth(queue) } };
    },
  };
}

/** The queue of a hook, also of one that is gone. Throws `not_found`. */
export function queueOf(store: Pick<Store, 'rows'>, id: string): QueueKey {
  const [insert] = store.rows('webhook', id);
  if (insert === undefined) throw noSuchHook(id);
  return insert.seq;
}

function attemptView(
  { deliveries }: Pick<Store, 'deliveries'>,
  hook: string,
  { n, logSeqs, batch, attempt, at, status, outcome, error, ms, answer }: NumberedAttempt,
): object {
  const last = n + logSeqs.length - 1;
  return {
    id: batch ? batchId(hook, n, last) : deliveries.event(logSeqs[0] ?? 0).id,
    seq: n,
    ...(batch && { last_seq: last }),
    ...{ attempt, at, outcome, ms },
    ...(status !== undefined && { status }),
    ...(error !== undefined && { error }),
    ...(answer !== undefined && { answer }),
  };
}
