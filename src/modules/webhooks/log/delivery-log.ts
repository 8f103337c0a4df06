import { setTimeout as delay } from 'node:timers/promises';
import type { Databases } from '../../../core/log/databases.ts';
import { dispatchRowsMax } from '../../../core/log/limits.ts';
import type { LogPart, OpenPart, Reads } from '../../../core/log/store.ts';
import type { PutDelivery } from '../../../core/log/shared/shared-log.ts';
import { Failure } from '../../../core/values/failure.ts';
import { TaskTurn, deliveryTask, putSign } from '../../cluster/log/task-turn.ts';
import type { Node } from '../hook.ts';
import { putAttempt, putBatch } from './attempts.ts';
import type { Deliveries, DispatchResult } from './deliveries.ts';
import { createDeliveryReads } from './delivery-reads.ts';
import { putDispatch } from './dispatch.ts';
import { putReplayed, removeExpired } from './retention.ts';

/** How long a change of a hook waits until the deliverer has applied it. */
const appliedMsMax = 5_000;

/** How often that is checked. */
const appliedPollMs = 5;

/** The queues of the hooks, and the attempts at their messages. */
export const deliveriesPart: LogPart<Deliveries> = {
  open: createDeliveryLog,
  unfollowed: (part) => ({ ...part, waitUntilApplied: () => Promise.resolve() }),
};

function createDeliveryLog(given: OpenPart): Deliveries {
  const { databases, reads, newId, writer: log, shared, closing } = given;
  const { delivery } = databases;
  const turn =
    shared &&
    new TaskTurn(databases, deliveryTask, { ...shared, monotonicMs: () => performance.now() });
  closing.addEventListener('abort', () => turn?.end(), { once: true });
  /** The name of this process as the writer. */
  let writer: string | undefined;
  /** The seq up to which this process has read the log for events; it can be behind the cursor. */
  let readTo = 0;
  const cursor = (): number => Number(delivery.get('cursor') ?? 0);
  const isWriter = (): boolean => writer !== undefined && delivery.get('writer') === writer;
  const write = <T>(put: PutDelivery<T>): Promise<T> =>
    log.write(() => {
      if (!isWriter()) throw superseded();
      return put;
    });
  const begin = async (name: string): Promise<void> => {
    await turn?.ready();
    await log.write(() => {
      turn?.require();
      return (to) => {
        putWriter(to, name, reads.seq());
      };
    });
    writer = name;
    readTo = 0;
    turn?.begin(() => write(putAlive));
  };
  const end = async (): Promise<void> => {
    turn?.end();
    await write(removeWriter);
    writer = undefined;
  };

  return {
    begin: () => begin(turn?.nameOf(newId()) ?? newId()),
    end,
    cursor,
    markApplied: (seq) =>
      write(({ delivery: to }) => {
        to.putSync('settled', String(seq));
      }),
    waitUntilApplied: (seq) => waitUntilApplied(databases, seq),
    storeClock: (clockMs, outages) =>
      write((to) => {
        putClock(to, clockMs);
        if (outages !== undefined) to.delivery.putSync('outages', JSON.stringify(outages));
      }),
    async dispatch(node) {
      const after = readTo;
      const done = await write((to) => dispatchAfter(to, reads, { after, node }));
      readTo = done.upTo;
      return done;
    },
    ...createDeliveryReads(databases),
    record: (recorded, clockMs) =>
      write((to) => {
        putAttempt(to, recorded);
        putClock(to, clockMs);
      }),
    storeBatch: (of, batch, made) =>
      write((to) => {
        putBatch(to, of, batch, made);
      }),
    continueReplay: (clockMs) => write((to) => putReplayed(to, Math.trunc(clockMs))),
    expire: (of, before) => write((to) => removeExpired(to, of, before)),
  };
}

/** Dispatches the rows of the log after the cursor, or after a later seq that was read already. */
function dispatchAfter(
  databases: Databases,
  reads: Reads,
  { after, node }: { readonly after: number; readonly node: Node },
): DispatchResult {
  const { delivery } = databases;
  const written = Number(delivery.get('cursor') ?? 0);
  const done = putDispatch(databases, reads, { after: Math.max(written, after), node });
  // Reading rows that no hook gets again is harmless.
  if (done.hasWritten || done.upTo - written >= dispatchRowsMax) {
    delivery.putSync('cursor', String(done.upTo));
  }
  return done;
}

function putWriter({ delivery }: Databases, name: string, seq: number): void {
  delivery.putSync('writer', name);
  // No attempt is in flight, because the previous writer has ended.
  delivery.putSync('settled', String(seq));
}

function removeWriter({ delivery }: Databases): void {
  delivery.removeSync('writer');
}

function putClock({ delivery }: Databases, clockMs: number): void {
  delivery.putSync('clock', String(Math.trunc(clockMs)));
}

/** Shows other nodes that this one still delivers. */
function putAlive(databases: Databases): void {
  putSign(databases, deliveryTask);
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
