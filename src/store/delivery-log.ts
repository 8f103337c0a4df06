import { setTimeout as delay } from 'node:timers/promises';
import type { Change } from '../model/change.ts';
import { eventOf, type WaymarkEvent } from '../model/event.ts';
import { Failure } from '../model/failure.ts';
import { dispatchRowsMax, obeyedMsMax, obeyedPollMs, waitingCountedMax } from '../model/limits.ts';
import type { Databases } from './databases.ts';
import type { AttemptRecord, Deliveries, QueueKey, RecordedAttempt } from './deliveries.ts';
import { attemptKey, dueKey, dueOf, eventKey, nOf, queueOf, queueRange } from './delivery-keys.ts';
import { putDispatch } from './dispatch.ts';
import type { Reads } from './store.ts';
import { WriteQueue } from './write-queue.ts';

/** The deliveries of a store, with the end of their writing. */
export interface DeliveryLog extends Deliveries {
  /** Refuses further writes; resolves when those before are done. */
  close(): Promise<void>;
}

/** Makes the queues of hooks over the databases; `newId` makes the name of a writer. */
export function createDeliveryLog(
  databases: Databases,
  reads: Reads,
  { newId }: { readonly newId: () => string },
): DeliveryLog {
  const { delivery } = databases;
  const queue = new WriteQueue(databases);
  let writer: string | undefined;
  /** How far this process has read the log for events; behind the cursor, at times. */
  let readTo = 0;
  const cursor = (): number => Number(delivery.get('cursor') ?? 0);
  const write = <T>(put: () => T): Promise<T> =>
    queue.write(() => {
      if (writer === undefined || delivery.get('writer') !== writer) throw superseded();
      return put();
    });

  return {
    begin() {
      const name = newId();
      return queue.write(() => {
        delivery.putSync('writer', name);
        // Nothing of this process is under way, and nothing of another one, which has ended.
        delivery.putSync('settled', String(reads.seq()));
        writer = name;
        readTo = 0;
      });
    },
    end: () =>
      write(() => {
        delivery.removeSync('writer');
        writer = undefined;
      }),
    cursor,
    settle: (seq) =>
      write(() => {
        delivery.putSync('settled', String(seq));
      }),
    async obeyed(seq) {
      const isSaid = () => Number(delivery.get('settled') ?? 0) >= seq;
      for (let waitedMs = 0; waitedMs < obeyedMsMax; waitedMs += obeyedPollMs) {
        if (isSaid() || delivery.get('writer') === undefined) return;
        await delay(obeyedPollMs);
      }
    },
    clockMs: () => Number(delivery.get('clock') ?? 0),
    dispatch: (node) =>
      write(() => {
        const written = cursor();
        const done = putDispatch(databases, reads, { after: Math.max(written, readTo), node });
        readTo = done.upTo;
        // A row that is nobody's event can be read again.
        if (done.grown.size > 0 || readTo - written >= dispatchRowsMax) {
          delivery.putSync('cursor', String(readTo));
        }
        return done;
      }),
    ...createDeliveryReads(databases),
    record: (recorded, clockMs) =>
      write(() => {
        putAttempt(databases, recorded);
        delivery.putSync('clock', String(Math.trunc(clockMs)));
      }),
    close: () => queue.close(),
  };
}

type DeliveryReads = Pick<
  Deliveries,
  'busy' | 'queued' | 'waiting' | 'latest' | 'attempts' | 'depth' | 'oldest' | 'event'
>;

function createDeliveryReads(databases: Databases): DeliveryReads {
  const { pending, attempt, due } = databases;
  return {
    busy: () => [...new Set([...queuesIn(pending), ...queuesIn(due)])],
    queued(of, after, limit) {
      const { end } = queueRange(of);
      const range = pending.getRange({ start: eventKey(of, after + 1), end, limit });
      return [...range].map(({ key, value }) => ({ n: nOf(key), logSeq: Number(value) }));
    },
    waiting: (of, limit) => [...due.getKeys({ ...queueRange(of), limit })].map(dueOf),
    latest: (of, n) => latestAttempt(databases, of, n),
    *attempts(of, before) {
      const { start: end, end: newest } = queueRange(of);
      const start = before === undefined ? newest : eventKey(of, before);
      for (const { key, value } of attempt.getRange({ start, end, reverse: true })) {
        yield { n: nOf(key), ...(JSON.parse(value) as AttemptRecord) };
      }
    },
    depth: (of) => depthOf(databases, of),
    event: (logSeq) => eventAt(databases, logSeq),
    oldest(of) {
      const [first] = pending.getRange({ ...queueRange(of), limit: 1 });
      const seqs = [...due.getKeys({ ...queueRange(of), limit: waitingCountedMax })].map(
        (key) => dueOf(key).n,
      );
      const n = seqs.length > 0 ? Math.min(...seqs) : undefined;
      const [waiting = Infinity] =
        n === undefined ? [] : (latestAttempt(databases, of, n)?.logSeqs ?? []);
      const logSeq = Math.min(waiting, first === undefined ? Infinity : Number(first.value));
      return logSeq === Infinity ? undefined : eventAt(databases, logSeq);
    },
  };
}

function eventAt({ log }: Databases, logSeq: number): WaymarkEvent {
  const text = log.get(logSeq);
  const event = text === undefined ? undefined : eventOf(JSON.parse(text) as Change);
  if (event === undefined) throw new Error(`change ${logSeq} is no event`);
  return event;
}

function putAttempt(
  { pending, attempt, due }: Databases,
  { queue, n, record, wasDueMs }: RecordedAttempt,
): void {
  if (wasDueMs === undefined) pending.removeSync(eventKey(queue, n));
  else due.removeSync(dueKey(queue, wasDueMs, n));
  if (record.dueMs !== undefined) due.putSync(dueKey(queue, record.dueMs, n), '1');
  attempt.putSync(attemptKey(queue, n, record.attempt), JSON.stringify(record));
}

function latestAttempt(
  { attempt }: Databases,
  queue: QueueKey,
  n: number,
): AttemptRecord | undefined {
  const range = { start: eventKey(queue, n + 1), end: eventKey(queue, n), reverse: true, limit: 1 };
  for (const { value } of attempt.getRange(range)) return JSON.parse(value) as AttemptRecord;
  return undefined;
}

/** What waits to be sent for the first time has no gaps, but where attempts are under way. */
function depthOf(
  { lane, pending, due }: Databases,
  queue: QueueKey,
): ReturnType<Deliveries['depth']> {
  const [first] = pending.getKeys({ ...queueRange(queue), limit: 1 });
  const newest = Number(lane.get(queue) ?? 0);
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

function superseded(): Failure {
  return new Failure('conflict', 'Another process delivers the webhooks of this data folder.');
}
