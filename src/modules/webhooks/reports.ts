import { errorDetected } from '../../core/log/events/event.ts';
import { Failure } from '../../core/values/failure.ts';
import type { Hook } from './hook.ts';
import type { Log } from '../../core/report/log.ts';
import type { AttemptRecord } from './log/deliveries.ts';
import type { Emit } from '../../core/log/events/emit.ts';
import type { Store } from '../../core/log/store.ts';
import type { EventText } from './message.ts';
import type { Verdict } from './retry.ts';
import type { Receiver } from './receivers.ts';

/** The author of the changes that the deliverer makes. */
const author = 'deliverer';

/** A finished attempt, for reports and metrics. */
export interface FinishedAttempt {
  readonly receiver: Receiver;
  readonly n: number;
  readonly record: AttemptRecord;
  readonly verdict: Verdict;
  /** The message's first event. */
  readonly event: EventText;
}

/** Reports a finished attempt: pauses the hook or raises an event. Never rejects. */
export type Report = (ended: FinishedAttempt) => Promise<void>;

/**
 * Makes a Report. It pauses a hook whose receiver answered 410
 * (docs/design/webhooks.md#deliveries), and raises an `error.detected` for a delivery that was
 * given up, at most once a minute for a hook. It logs both.
 */
export function createReports({
  store,
  emit,
  log,
}: {
  readonly store: Store;
  readonly emit: Emit;
  readonly log: Log;
}): Report {
  return async ({ receiver: { hook }, n, record, verdict, event }) => {
    const fields = { hook: hook.id, seq: n, attempt: record.attempt, status: record.status };
    const unstored = (error: unknown): void => {
      if (error instanceof Failure && error.code === 'unavailable') return;
      log.error({ err: error, ...fields }, 'Cannot store the outcome of a webhook delivery.');
    };
    if (verdict.isGone) {
      const isPaused = await pause(store, hook).catch(async (error: unknown) => {
        const isCopy = store.rowLog.identity().follows !== undefined;
        if (!isCopy) {
          unstored(error);
          return undefined;
        }
        // Only the centre can pause it.
        const message = `The receiver of the hook ${hook.id} answered 410 (Gone): pause the hook.`;
        const gone = { code: 'receiver_gone', message, id: hook.id, seq: n };
        await emit('error.detected', gone, { about: hook.id });
        return undefined;
      });
      if (isPaused === true) {
        log.warn(
          fields,
          'The webhook is paused: its receiver answered 410 (Gone). Resume it to deliver again.',
        );
      }
    }
    if (record.outcome !== 'exhausted') return;
    const givenUp = 'Gave up a webhook delivery after its last attempt. A replay sends it again.';
    log.warn({ ...fields, err: record.error }, givenUp);
    // A failed delivery of an error.detected raises no other one: that could repeat forever.
    if (event.type === errorDetected) return;
    const reason = record.error ?? `status ${record.status ?? ''}`;
    const cause = `after ${record.tries} attempts: ${reason}`;
    const message = `Delivery ${n} of the hook was given up ${cause}`;
    const error = { code: 'delivery_exhausted', message, id: hook.id, seq: n };
    await emit('error.detected', error, { about: hook.id });
  };
}

/** Pauses a hook, unless it is already paused or its URL has changed. */
function pause(store: Store, { id, url }: Hook): Promise<boolean> {
  return store.commit(author, (reads) => {
    const now = reads.hook(id)?.hook;
    const isMeant = now?.active === true && now.url === url;
    const draft = { family: 'webhook', id, action: 'edit', data: { active: false } } as const;
    return { drafts: isMeant ? [draft] : [], answer: () => isMeant };
  });
}
