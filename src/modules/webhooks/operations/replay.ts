import type { StaticInput, StaticOutput } from '../../../core/values/json/static.ts';
import { batchId } from '../../../core/log/events/event.ts';
import { Failure } from '../../../core/values/failure.ts';
import {} from './limits.ts';
import type { QueueKey, ReplayRange } from '../log/deliveries.ts';
import type { Decision, Reads, Store } from '../../../core/log/store.ts';
import { queueOf } from './deliveries.ts';
import { seqFromMoment, seqOfMoment } from '../../../core/operations/records/moment.ts';
import {
  changeAuthorOf,
  defineOperation,
  type OperationResult,
} from '../../../core/operations/operation.ts';
import { identifyRequest } from '../../../core/operations/records/idempotency.ts';
import { vkMember } from '../../../core/operations/records/schema.ts';
import { noSuchHook, type HookParts } from './hook-family.ts';
import { turnsOf } from '../../../core/operations/turns.ts';
import type { WorkTurns } from '../../../core/fair/turns.ts';
import { deliveriesPart } from '../log/delivery-log.ts';
import { storedHooks } from '../log/family.ts';

type ReplayParts = Pick<HookParts, 'store' | 'newId'>;

const text = { type: 'string', nullable: true } as const;

const replayInput = {
  type: 'object',
  required: ['id'],
  properties: {
    id: { type: 'string', description: 'The id of the hook.' },
    delivery: {
      ...text,
      description: 'One message, by its id or its number among the messages of the hook.',
    },
    since: { ...text, description: 'Events since a date-time or a seq of the log.' },
    until: { ...text, description: 'Events up to a date-time or a seq of the log.' },
    failed: {
      type: 'boolean',
      nullable: true,
      description: 'Only messages that were given up after their last attempt.',
    },
  },
} as const;

type ReplayInput = StaticInput<typeof replayInput>;

const replay = {
  title: 'Replay',
  type: 'object',
  required: ['seq', 'deliveries'],
  properties: {
    seq: { type: 'integer', description: 'Position of the request in the log.' },
    deliveries: { type: 'integer', description: 'Number of messages that are sent again.' },
  },
} as const;

type Replay = StaticOutput<typeof replay>;

/**
 * webhook.replay: sends messages of a hook again, with the same ids and bodies: one message, those
 * of a period, or those that were given up. Answers when the request is durable. Refuses with
 * `not_found` (no such hook or message), `invalid` or `conflict`.
 */
export const replayDeliveries = defineOperation({
  name: 'svc1.webhook.replay',
  scope: 'webhook',
  effect: 'writes',
  summary: 'Sends messages of a hook again: one, those of a time, or those that were given up.',
  envelope: { vk: vkMember },
  output: replay,
  failures: ['not_found', 'conflict'],
  input: replayInput,
  run:
    ({ store, newId }: ReplayParts) =>
    async (v, call): Promise<OperationResult<Replay>> => {
      const { vk } = call;
      const request = identifyRequest('webhook.replay', { ...v }, call);
      const answered = (reads: Reads): OperationResult<Replay> | undefined => {
        const claim = vk === undefined ? undefined : request.earlier(reads, vk);
        const first = claim && reads.change(claim.seq);
        if (first === undefined) return undefined;
        const { deliveries: count } = first.data as { readonly deliveries: number };
        return replayAnswer(first.seq, count, vk, true);
      };
      // Checked first, because the messages and the hook may have been deleted since.
      const before = answered(store);
      if (before !== undefined) return before;
      if (store.of(storedHooks).hook(v.id) === undefined) throw noSuchHook(v.id);
      const queue = queueOf(store, v.id);
      const range = rangeOf(store, queue, v);
      const deliveries = await countOf(store, queue, range, turnsOf(call));
      return store.commit(changeAuthorOf(call), (reads): Decision<OperationResult<Replay>> => {
        const meanwhile = answered(reads);
        if (meanwhile !== undefined) return { drafts: [], answer: () => meanwhile };
        const data = { queue, ...range, deliveries };
        const claimed = vk === undefined ? {} : { vk: request.claim(vk) };
        return {
          drafts: [{ family: 'replay', id: newId(), action: 'insert', data, ...claimed }],
          answer: ([change]) => replayAnswer(change?.seq ?? 0, deliveries, vk, false),
        };
      });
    },
});

function replayAnswer(
  seq: number,
  deliveries: number,
  vk: string | undefined,
  replayed: boolean,
): OperationResult<Replay> {
  return {
    kind: 'data',
    data: { seq, deliveries },
    ...(vk !== undefined && { vk }),
    ...(replayed && { replayed }),
  };
}

function rangeOf(store: Store, queue: QueueKey, v: ReplayInput): ReplayRange {
  const deliveries = store.part(deliveriesPart);
  const { delivery, since, until, failed = false } = v;
  const isPart = since !== undefined || until !== undefined || failed;
  if (delivery !== undefined && isPart) {
    throw new Failure('invalid', 'Give delivery, or since, until and failed, not both.', {
      field: 'delivery',
    });
  }
  if (delivery !== undefined) {
    const places = placesOfDelivery(store, queue, v.id, delivery);
    const from = places && deliveries.messageWith(queue, places.first);
    if (places === undefined || from === undefined) {
      throw new Failure('not_found', 'The hook has sent no message with this id.', {
        field: 'delivery',
      });
    }
    return { from, to: Math.max(from, places.last), failed: false };
  }
  if (!isPart) {
    throw new Failure(
      'invalid',
      'Say which messages to send again: delivery, since, until or failed.',
      {
        field: 'delivery',
      },
    );
  }
  const first = since === undefined ? 0 : seqFromMoment(store, 'since', since);
  const last = until === undefined ? store.seq() : seqOfMoment(store, 'until', until);
  const from = deliveries.placeOf(queue, first);
  return {
    // A batch is sent as a whole, even if it began before.
    from: deliveries.messageWith(queue, from) ?? from,
    to: deliveries.placeOf(queue, last + 1) - 1,
    failed,
  };
}

/** A range of places in a hook's queue, both ends included. */
interface Places {
  readonly first: number;
  readonly last: number;
}

/** The places of a message in the hook's queue, by the id that its receiver has. */
export function placesOfDelivery(
  store: Pick<Store, 'part' | 'history'>,
  queue: QueueKey,
  hook: string,
  delivery: string,
): Places | undefined {
  const deliveries = store.part(deliveriesPart);
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

/** Whether a batch with these places was sent; it may have been split since. */
function wasSent({ part }: Pick<Store, 'part'>, queue: QueueKey, { first, last }: Places): boolean {
  const deliveries = part(deliveriesPart);
  for (const { n, batch, outcome, logSeqs } of deliveries.attempts(queue, first + 1)) {
    if (n !== first) return false;
    const isIt = batch === true && outcome !== 'frozen' && n + logSeqs.length - 1 === last;
    if (isIt) return true;
  }
  return false;
}

/** The seq of an event; the id of an event about a change ends with the seq of the change. */
function logSeqOf(reads: Pick<Reads, 'history'>, eventId: string): number | undefined {
  const caused = /^[0-9a-f-]{36}-(\d{1,10})$/.exec(eventId)?.[1];
  if (caused !== undefined) return Number(caused);
  return reads.history('event', eventId, { before: undefined, limit: 1 })[0]?.seq;
}

async function countOf(
  { part }: Pick<Store, 'part'>,
  queue: QueueKey,
  range: ReplayRange,
  turns: WorkTurns,
): Promise<number> {
  const deliveries = part(deliveriesPart);
  let count = 0;
  let from: number | undefined = range.from;
  while (from !== undefined) {
    await turns.next();
    const rest: ReplayRange = { ...range, from };
    from = undefined;
    for (const n of deliveries.messagesIn(queue, rest)) {
      count += 1;
      if (!turns.isOver()) continue;
      from = n + 1;
      break;
    }
  }
  return count;
}
