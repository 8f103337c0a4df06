import { errorDetected } from '../model/event.ts';
import { Failure } from '../model/failure.ts';
import type { Hook } from '../model/hook.ts';
import type { Log } from '../observability/log.ts';
import type { AttemptRecord } from '../store/deliveries.ts';
import type { Store } from '../store/store.ts';
import type { EventText } from './body.ts';
import type { Detect } from './detected.ts';
import type { Verdict } from './outcome.ts';
import type { Receiver } from './receivers.ts';

/** Who the changes of the deliverer are said to be by. */
const author = 'deliverer';

/** An attempt that is over, for whoever watches. */
export interface EndedAttempt {
  readonly receiver: Receiver;
  readonly n: number;
  readonly record: AttemptRecord;
  readonly verdict: Verdict;
  /** The message's event, or its first. */
  readonly event: EventText;
}

/** Acts on what an attempt comes to, beyond its own record. Never rejects. */
export type Report = (ended: EndedAttempt) => Promise<void>;

/**
 * Makes the reports: a hook whose receiver is gone is paused (docs/design/webhooks.md#deliveries),
 * a delivery that was given up is an `error.detected`, at most once a minute for a hook; both stand
 * in the log.
 */
export function createReports({
  store,
  detect,
  log,
}: {
  readonly store: Store;
  readonly detect: Detect;
  readonly log: Log;
}): Report {
  return async ({ receiver: { hook }, n, record, verdict, event }) => {
    const told = { hook: hook.id, seq: n, attempt: record.attempt, status: record.status };
    const unstored = (error: unknown): void => {
      if (error instanceof Failure && error.code === 'unavailable') return;
      log.error({ err: error, ...told }, 'what became of a webhook could not be stored');
    };
    if (verdict.isGone) {
      const isPaused = await pause(store, hook).catch(unstored);
      if (isPaused === true) {
        log.warn(told, 'a webhook is paused: its receiver says that it is gone (410)');
      }
    }
    if (record.outcome !== 'exhausted') return;
    log.warn({ ...told, err: record.error }, 'a webhook was given up after its last attempt');
    // Of events that tell of errors, none is made of another: that could go on without end.
    if (event.type === errorDetected) return;
    const why = record.error ?? `status ${record.status ?? ''}`;
    const message = `Delivery ${n} of the hook was given up after ${record.tries} attempts: ${why}`;
    const error = { code: 'delivery_exhausted', message, id: hook.id, more: { seq: n } };
    await detect({ ...error, about: hook.id }).catch(unstored);
  };
}

/** Pauses a hook, unless it is paused by now, or goes to another address than it did. */
function pause(store: Store, { id, url }: Hook): Promise<boolean> {
  return store.commit(author, (reads) => {
    const now = reads.hook(id)?.hook;
    const isMeant = now?.active === true && now.url === url;
    const draft = { family: 'webhook', id, action: 'edit', data: { active: false } } as const;
    return { drafts: isMeant ? [draft] : [], answer: () => isMeant };
  });
}
