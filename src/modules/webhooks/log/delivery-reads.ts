import type { Change } from '../../../core/log/change.ts';
import type { Databases } from '../../../core/log/databases.ts';
import { storedJson } from '../../../core/log/encoding.ts';
import { type WaymarkEvent, eventOf } from '../../../core/log/events/event.ts';
import { rowBytes } from '../../../core/log/reads.ts';
import { entryEvent, entryOfSeq } from '../../nodes/log/outbox-entries.ts';
import { latestAttempt } from './attempts.ts';
import {
  type AttemptRecord,
  type Deliveries,
  type DueMessage,
  type Outage,
  type QueueKey,
  dueOf,
  eventKey,
  nOf,
  queueOf,
  queueRange,
} from './deliveries.ts';
import { hasExpired, messageWith, messagesIn } from './retention.ts';

/** Up to this number, the messages of a hook that wait for a retry are counted. */
const waitingCountedMax = 1_000;

/** Messages at either end of a queue that are examined to find the oldest one. */
const oldestExaminedMax = 16;

/** The reads among Deliveries. */
type DeliveryReads = Pick<
  Deliveries,
  | 'nonEmptyQueues'
  | 'queued'
  | 'waiting'
  | 'firstWaiting'
  | 'latest'
  | 'attempts'
  | 'depth'
  | 'oldest'
  | 'event'
  | 'eventBytes'
  | 'isReplaying'
  | 'messagesIn'
  | 'messageWith'
  | 'placeOf'
  | 'newest'
  | 'queues'
  | 'clockMs'
  | 'outages'
  | 'hasExpired'
>;

/** Reads of the queues and attempts: see Deliveries. */
export function createDeliveryReads(databases: Databases): DeliveryReads {
  const { pending, attempt, due, delivery } = databases;
  return {
    clockMs: () => Number(delivery.get('clock') ?? 0),
    outages: () => storedJson(delivery.get('outages') ?? '[]') as readonly Outage[],
    nonEmptyQueues: () => [...new Set([...queuesIn(pending), ...queuesIn(due)])],
    queued(of, after, limit) {
      const { end } = queueRange(of);
      const range = pending.getRange({ start: eventKey(of, after + 1), end, limit });
      return [...range].map(({ key, value }) => ({ n: nOf(key), logSeq: Number(value) }));
    },
    waiting: (of, limit) => [...due.getKeys({ ...queueRange(of), limit })].map(dueOf),
    firstWaiting: (of) => firstOf(databases, of),
    latest: (of, n) => latestAttempt(databases, of, n),
    *attempts(of, before) {
      const { start: end, end: newest } = queueRange(of);
      const start = before === undefined ? newest : eventKey(of, before);
      for (const { key, value } of attempt.getRange({ start, end, reverse: true })) {
        yield { n: nOf(key), ...(storedJson(value) as AttemptRecord) };
      }
    },
    depth: (of) => depthOf(databases, of),
    isReplaying: () => databases.job.getKeysCount({ limit: 1 }) > 0,
    messagesIn: (of, range) => messagesIn(databases, of, range),
    messageWith: (of, n) => messageWith(databases, of, n),
    placeOf: (of, logSeq) => placeOf(databases, of, logSeq),
    queues: () => [...databases.lane.getKeys()],
    hasExpired: (of, before) => hasExpired(databases, of, before),
    newest: (of) => newestOf(databases, of),
    event: (logSeq) => eventAt(databases, logSeq),
    eventBytes: (logSeq) => {
      const n = entryOfSeq(logSeq);
      if (n === undefined) return rowBytes(databases, logSeq);
      return databases.outbox.getBinaryFast(n)?.length ?? 0;
    },
    oldest(of) {
      const [first] = pending.getRange({ ...queueRange(of), limit: 1 });
      const n = firstOf(databases, of)?.n;
      const [waiting = Infinity] =
        n === undefined ? [] : (latestAttempt(databases, of, n)?.logSeqs ?? []);
      const logSeq = Math.min(waiting, first === undefined ? Infinity : Number(first.value));
      return logSeq === Infinity ? undefined : eventAt(databases, logSeq);
    },
  };
}

/** Messages with the most attempts wait longest, so the oldest is due first or last. */
function firstOf({ due }: Databases, queue: QueueKey): DueMessage | undefined {
  const { start, end } = queueRange(queue);
  const soonest = due.getKeys({ start, end, limit: oldestExaminedMax });
  const latest = due.getKeys({ start: end, end: start, reverse: true, limit: oldestExaminedMax });
  const messages = [...soonest, ...latest].map(dueOf);
  return messages.toSorted((one, other) => one.n - other.n)[0];
}

function eventAt(databases: Databases, logSeq: number): WaymarkEvent {
  const n = entryOfSeq(logSeq);
  if (n !== undefined) {
    const taken = entryEvent(databases, n);
    if (taken === undefined) throw new Error(`entry ${n} of the outbox is no event`);
    return taken;
  }
  const text = databases.log.get(logSeq);
  const event = text === undefined ? undefined : eventOf(storedJson(text) as Change);
  if (event === undefined) throw new Error(`change ${logSeq} is no event`);
  return event;
}

/** The queue has no gaps except for attempts in flight. */
function depthOf(databases: Databases, queue: QueueKey): ReturnType<Deliveries['depth']> {
  const { pending, due } = databases;
  const [first] = pending.getKeys({ ...queueRange(queue), limit: 1 });
  const newest = newestOf(databases, queue);
  const waiting = due.getKeysCount({ ...queueRange(queue), limit: waitingCountedMax });
  return { queued: first === undefined ? 0 : newest - nOf(first) + 1, waiting };
}

/** The hooks that have any key in a database: a seek for each. */
function* queuesIn(database: Databases['pending']): Iterable<QueueKey> {
  let start: Buffer | undefined;
  for (;;) {
    const [key] = database.getKeys({ ...(start !== undefined && { start }), limit: 1 });
    if (key === undefined) return;
    const queue = queueOf(key);
    yield queue;
    start = queueRange(queue).end;
  }
}

function newestOf({ lane }: Databases, queue: QueueKey): number {
  return Number(lane.get(queue) ?? 0);
}

/** Places follow the order of the log, so a binary search finds the place. */
function placeOf(databases: Databases, queue: QueueKey, logSeq: number): number {
  let [low, high] = [1, newestOf(databases, queue) + 1];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (logSeqOf(databases, queue, middle) < logSeq) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The seq of the n-th event; 0 if it was removed, because removed events are the oldest. */
function logSeqOf(databases: Databases, queue: QueueKey, n: number): number {
  const queued = databases.pending.get(eventKey(queue, n));
  if (queued !== undefined) return Number(queued);
  const first = messageWith(databases, queue, n);
  if (first === undefined) return 0;
  return latestAttempt(databases, queue, first)?.logSeqs[n - first] ?? 0;
}
