import { setImmediate as nextTurn } from 'node:timers/promises';
import { batchId } from '../../model/event.ts';
import { Failure } from '../../model/failure.ts';
import { replayCountedAtOnce } from './limits.ts';
import type { QueueKey, ReplayRange } from '../../store/deliveries/deliveries.ts';
import type { Decision, Reads, Store } from '../../store/store.ts';
import { queueOf } from './deliveries.ts';
import { noSuchHook, type HookOperations } from './hooks.ts';
import { seqFromMoment, seqOfMoment } from '../records/moment.ts';
import { authorOf, type Handler, type OperationResult } from '../operation.ts';
import { replayDescription } from './hooks-description.ts';
import { idempotency } from '../records/versions.ts';

interface ReplayInput {
  id: string;
  delivery?: string;
  since?: string;
  until?: string;
  failed?: boolean;
}

const text = { type: 'string', nullable: true } as const;

/**
 * webhook.replay: has messages of a hook sent again, with the same ids and bodies: one, those of a
 * time, or those that were given up. Answers when that is durable; they are sent as any other.
 * Refuses with `not_found` (no such hook or message), `invalid` or `conflict`.
 */
export function replayDeliveries({
  store,
  newId,
}: Pick<HookOperations, 'store' | 'newId'>): Handler<ReplayInput> {
  return {
    ...replayDescription,
    input: {
      type: 'object',
      required: ['id'],
      properties: {
        id: { type: 'string' },
        delivery: {
          ...text,
          description: 'One message, by its id or a seq of the hook’s own count.',
        },
        since: { ...text, description: 'Events from a date-time or a seq of the log on.' },
        until: { ...text, description: 'Events up to a date-time or a seq of the log.' },
        failed: {
          type: 'boolean',
          nullable: true,
          description: 'Only what was given up after its last attempt.',
        },
      },
    },
    run: async (v, call): Promise<OperationResult> => {
      const { vk } = call;
      const write = idempotency('webhook.replay', { ...v }, call);
      const answered = (reads: Reads): OperationResult | undefined => {
        const claim = vk === undefined ? undefined : write.earlier(reads, vk);
        const first = claim && reads.change(claim.seq);
        if (first === undefined) return undefined;
        const { deliveries: count } = first.data as { readonly deliveries: number };
        return told(first.seq, count, vk, true);
      };
      // First of all: what was sent again then may be gone by now, and the hook with it.
      const before = answered(store);
      if (before !== undefined) return before;
      if (store.hook(v.id) === undefined) throw noSuchHook(v.id);
      const queue = queueOf(store, v.id);
      const range = rangeOf(store, queue, v);
      const deliveries = await countOf(store, queue, range, call.signal());
      return store.commit(authorOf(call), (reads): Decision<OperationResult> => {
        const meanwhile = answered(reads);
        if (meanwhile !== undefined) return { drafts: [], answer: () => meanwhile };
        const data = { queue, ...range, deliveries };
        const claimed = vk === undefined ? {} : { vk: write.claim(vk) };
        return {
          drafts: [{ family: 'replay', id: newId(), action: 'insert', data, ...claimed }],
          answer: ([change]) => told(change?.seq ?? 0, deliveries, vk, false),
        };
      });
    },
  };
}

function told(
  seq: number,
  deliveries: number,
  vk: string | undefined,
  replayed: boolean,
): OperationResult {
  return {
    kind: 'data',
    data: { seq, deliveries },
    ...(vk !== undefined && { vk }),
    ...(replayed && { replayed }),
  };
}

function rangeOf(store: Store, queue: QueueKey, v: ReplayInput): ReplayRange {
  const { deliveries } = store;
  const { delivery, since, until, failed = false } = v;
  const isPart = since !== undefined || until !== undefined || failed;
  if (delivery !== undefined && isPart) {
    throw new Failure('invalid', 'Say delivery, or since, until and failed.', {
      field: 'delivery',
    });
  }
  if (delivery !== undefined) {
    const places = placesOfDelivery(store, queue, v.id, delivery);
    const from = places && deliveries.messageWith(queue, places.first);
    if (places === undefined || from === undefined) {
      throw new Failure('not_found', 'The hook has no message of this id that was ever sent.', {
        field: 'delivery',
      });
    }
    return { from, to: Math.max(from, places.last), failed: false };
  }
  if (!isPart) {
    throw new Failure('invalid', 'Say what to send again: delivery, since, until or failed.', {
      field: 'delivery',
    });
  }
  const first = since === undefined ? 0 : seqFromMoment(store, 'since', since);
  const last = until === undefined ? store.seq() : seqOfMoment(store, 'until', until);
  const from = deliveries.placeOf(queue, first);
  return {
    // A batch is sent whole, or not at all: also one that began before.
    from: deliveries.messageWith(queue, from) ?? from,
    to: deliveries.placeOf(queue, last + 1) - 1,
    failed,
  };
}

/** Places in a hook's count, both included. */
interface Places {
  readonly first: number;
  readonly last: number;
}

/** The places of a message in the hook's count, by what its receiver knows it by. */
function placesOfDelivery(
  store: Store,
  queue: QueueKey,
  hook: string,
  delivery: string,
): Places | undefined {
  const { deliveries } = store;
  if (/^\d{1,15}$/.test(delivery)) return { first: Number(delivery), last: Number(delivery) };
  const [, first, last] = /^[0-9a-f-]{36}-(\d{1,15})-(\d{1,15})$/.exec(delivery) ?? [];
  if (first !== undefined && last !== undefined) {
    const places = { first: Number(first), last: Number(last) };
    const isOwn = delivery === batchId(hook, places.first, places.last);
    return isOwn && wasSent(store, queue, places) ? places : undefined;
  }
  const logSeq = logSeqOf(store, delivery);
  if (logSeq === undefined) return undefined;
  const place = deliveries.placeOf(queue, logSeq);
  const n = deliveries.messageWith(queue, place);
  if (n === undefined || deliveries.latest(queue, n)?.logSeqs[place - n] !== logSeq) {
    return undefined;
  }
  return deliveries.event(logSeq).id === delivery ? { first: place, last: place } : undefined;
}

/** Whether a batch of these places was ever sent; it may have been split since. */
function wasSent(
  { deliveries }: Pick<Store, 'deliveries'>,
  queue: QueueKey,
  { first, last }: Places,
): boolean {
  for (const { n, batch, outcome, logSeqs } of deliveries.attempts(queue, first + 1)) {
    if (n !== first) return false;
    const isIt = batch === true && outcome !== 'frozen' && n + logSeqs.length - 1 === last;
    if (isIt) return true;
  }
  return false;
}

/** The seq of an event: it is one of its own, or the id says which change causes it. */
function logSeqOf(reads: Pick<Reads, 'history'>, eventId: string): number | undefined {
  const caused = /^[0-9a-f-]{36}-(\d{1,10})$/.exec(eventId)?.[1];
  if (caused !== undefined) return Number(caused);
  return reads.history('event', eventId, { before: undefined, limit: 1 })[0]?.seq;
}

async function countOf(
  { deliveries }: Pick<Store, 'deliveries'>,
  queue: QueueKey,
  range: ReplayRange,
  signal: AbortSignal,
): Promise<number> {
  let [count, from] = [0, range.from];
  for (;;) {
    let inTurn = 0;
    for (const n of deliveries.messagesIn(queue, { ...range, from })) {
      from = n + 1;
      inTurn += 1;
      if (inTurn === replayCountedAtOnce) break;
    }
    count += inTurn;
    if (inTurn < replayCountedAtOnce) return count;
    await nextTurn(undefined, { signal });
  }
}
