import { setTimeout as delay } from 'node:timers/promises';
import { Failure } from '../../model/failure.ts';
import type { Databases } from '../databases.ts';
import { appliedMsMax, appliedPollMs, dispatchRowsMax } from '../limits.ts';
import type { WriteQueue } from '../log/write-queue.ts';
import type { Reads } from '../store.ts';
import { putAttempt, putBatch } from './attempts.ts';
import type { Deliveries } from './deliveries.ts';
import { createDeliveryReads } from './delivery-reads.ts';
import { putDispatch } from './dispatch.ts';
import { putReplayed } from './replay.ts';
import { removeExpired } from './retention.ts';

/** Makes the Deliveries of the databases; `newId` makes the name of a writer. */
export function createDeliveryLog(
  databases: Databases,
  reads: Reads,
  { newId, queue }: { readonly newId: () => string; readonly queue: WriteQueue },
): Deliveries {
  const { delivery } = databases;
  let writer: string | undefined;
  /** The seq up to which this process has read the log for events; it can be behind the cursor. */
  let readTo = 0;
  const cursor = (): number => Number(delivery.get('cursor') ?? 0);
  const isWriter = (): boolean => writer !== undefined && delivery.get('writer') === writer;
  const write = <T>(put: () => T, mayWrite = isWriter): Promise<T> =>
    queue.write(() => {
      if (!mayWrite()) throw superseded();
      return () => ({ result: put(), bytes: 0 });
    });

  return {
    begin() {
      const name = newId();
      const put = (): void => {
        delivery.putSync('writer', name);
        // No attempt is in flight, because the previous writer has ended.
        delivery.putSync('settled', String(reads.seq()));
        writer = name;
        readTo = 0;
      };
      return write(put, () => true);
    },
    end: () =>
      write(() => {
        delivery.removeSync('writer');
        writer = undefined;
      }),
    cursor,
    markApplied: (seq) =>
      write(() => {
        delivery.putSync('settled', String(seq));
      }),
    waitUntilApplied: (seq) => waitUntilApplied(databases, seq),
    storeClock: (clockMs, outages) =>
      write(() => {
        delivery.putSync('clock', String(Math.trunc(clockMs)));
        if (outages !== undefined) delivery.putSync('outages', JSON.stringify(outages));
      }),
    dispatch: (node) =>
      write(() => {
        const written = cursor();
        const done = putDispatch(databases, reads, { after: Math.max(written, readTo), node });
        readTo = done.upTo;
        // Reading rows that no hook gets again is harmless.
        if (done.hasWritten || readTo - written >= dispatchRowsMax) {
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
    storeBatch: (of, batch, made) =>
      write(() => {
        putBatch(databases, of, batch, made);
      }),
    continueReplay: (clockMs) => write(() => putReplayed(databases, Math.trunc(clockMs))),
    expire: (of, before) => write(() => removeExpired(databases, of, before)),
  };
}

async function waitUntilApplied({ delivery }: Databases, seq: number): Promise<void> {
  const isSaid = (): boolean => Number(delivery.get('settled') ?? 0) >= seq;
  for (let waitedMs = 0; waitedMs < appliedMsMax; waitedMs += appliedPollMs) {
    if (isSaid() || delivery.get('writer') === undefined) return;
    await delay(appliedPollMs);
  }
}

function superseded(): Failure {
  return new Failure('conflict', 'Another process delivers the webhooks of this data folder.');
}
