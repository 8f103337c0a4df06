import type { Task } from '../../../core/background/tasks.ts';
import type { Config } from '../../../core/config/config.ts';
import { eventDraft, ownEvent } from '../../../core/log/events/event.ts';
import { backgroundPollMs } from '../../../core/log/limits.ts';
import type { Store } from '../../../core/log/store.ts';
import type { WriteReport } from '../../../core/operations/records/idempotency.ts';
import type { Log } from '../../../core/report/log.ts';
import { Failure, failureFrom } from '../../../core/values/failure.ts';
import { type Scope, boundScopes, boundsOf, hasScope, keyEndMs } from '../../../core/values/key.ts';
import { doInTurn } from '../../cluster/log/task-turn.ts';
import { type DraftSchedule, type SiteDraft, waitingSchedule } from '../draft.ts';
import { type PublishRequest, hasMoreRecords, requireFamilies, runPublish } from './publish.ts';
import { storedDrafts } from '../log/family.ts';

/** How often the clock is looked at while a draft waits for its time: clocks can be moved. */
const scheduleLookMs = 1_000;

/** Rows of the log that are read to find whether a draft has changed; of more, drafts are read. */
const scheduleRowsMax = 1_000;

/** The dependencies of scheduled publications. */
export interface ScheduleParts {
  readonly store: Store;
  readonly newId: () => string;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly review: () => Config['review'];
  /** The scopes that every caller has, so that a key need not have them itself. */
  readonly anonymous: () => readonly Scope[];
  /** Publishes a large draft in another thread. Rejects as runPublish does. */
  readonly publishInThread: (request: PublishRequest) => Promise<WriteReport>;
  readonly log: Log;
}

/** A draft that waits for its time. */
interface Waiting {
  readonly draft: SiteDraft;
  readonly schedule: DraftSchedule;
}

/** The open drafts that wait for their time, in the order in which they are published. */
export function waitingDrafts(store: Pick<Store, 'of'>): readonly Waiting[] {
  const waiting: Waiting[] = [];
  for (const draft of store.of(storedDrafts).draftsIn('open')) {
    const schedule = waitingSchedule(draft);
    if (schedule !== undefined) waiting.push({ draft, schedule });
  }
  return waiting.toSorted(({ schedule: one }, { schedule: other }) => {
    return Date.parse(one.at) - Date.parse(other.at) || one.seq - other.seq;
  });
}

/**
 * Publishes the drafts that are due, one after the other, each once: the transaction that publishes
 * a draft ends its schedule. One that fails keeps the reason, raises `draft.publish_failed` and
 * does not delay the next one. Rejects with `unavailable` if nothing can be written.
 */
export async function publishDue(
  parts: ScheduleParts,
  waiting: readonly Waiting[],
  signal?: AbortSignal,
): Promise<void> {
  for (const one of waiting) {
    if (signal?.aborted === true || Date.parse(one.schedule.at) > parts.now()) return;
    await publishOne(parts, one);
  }
}

async function publishOne(parts: ScheduleParts, { draft, schedule }: Waiting): Promise<void> {
  const { store, log } = parts;
  const named = { draft: draft.name, at: schedule.at };
  try {
    const request = requestOf(parts, draft, schedule);
    const isLarge = hasMoreRecords(store, draft.id);
    await (isLarge ? parts.publishInThread(request) : runPublish(parts, request));
    log.info(named, `Published the draft ${draft.name} at its time.`);
  } catch (thrown) {
    const failure = failureFrom(thrown);
    // Without room or without the cluster, nothing can be written: it is tried again.
    if (failure.code === 'unavailable') throw thrown;
    if (await recordFailure(parts, { draft, schedule }, failure)) {
      const error = thrown instanceof Failure ? {} : { err: thrown };
      const message = `Cannot publish the draft ${draft.name} at its time: ${failure.message}`;
      log.error({ ...named, ...error }, message);
    }
  }
}

/** The publication that was confirmed. Throws `forbidden` if its key may not publish any more. */
function requestOf(
  { store, review, anonymous, now }: ScheduleParts,
  draft: SiteDraft,
  { by, seq, digest, resolve = {}, others }: DraftSchedule,
): PublishRequest {
  const key = store.key(by);
  if (key === undefined) {
    throw new Failure('forbidden', 'The key that has scheduled it was revoked since.');
  }
  if (keyEndMs(key) <= now()) {
    throw new Failure('forbidden', `The key that has scheduled it ended at ${key.until ?? ''}.`);
  }
  const bounds = boundsOf(key);
  const isHeld = (scope: Scope): boolean => bounds === undefined || boundScopes.includes(scope);
  const caller = { scopes: new Set([...anonymous(), ...key.scopes.filter(isHeld)]) };
  for (const scope of ['publish', 'read'] as const) {
    if (hasScope(caller, scope)) continue;
    throw new Failure('forbidden', `The key that has scheduled it lacks the scope ${scope} now.`);
  }
  requireFamilies(store, draft, caller);
  return {
    ...{ draft: draft.id, schedule: seq, confirm: digest, resolve, others, by },
    reader: { ...(bounds && { bounds }), keyId: by, ...caller },
    request: undefined,
    needsApproval: review().required,
  };
}

/** Keeps the reason with the draft, unless the schedule has ended; resolves to true if it has. */
function recordFailure(
  { store, newId, now }: ScheduleParts,
  { draft: { id, name }, schedule }: Waiting,
  { message: reason }: Failure,
): Promise<boolean> {
  const { by, seq, at } = schedule;
  return store.commit(by, (live) => {
    const draft = live.of(storedDrafts).draft(id);
    if (draft === undefined || waitingSchedule(draft)?.seq !== seq) {
      return { drafts: [], answer: () => false };
    }
    const event = ownEvent('draft.publish_failed', { id, name, at, by, reason }, now());
    return {
      drafts: [
        { family: 'draft', id, action: 'edit', data: { failed: reason } },
        eventDraft(newId(), event),
      ],
      answer: () => true,
    };
  });
}

/**
 * Publishes drafts at their times while a server runs; what fell due before, at its start. Of the
 * nodes of a cluster, one does it at a time.
 */
export function scheduledPublishing(parts: ScheduleParts): Task {
  const turn = parts.store.shared?.task('schedules');
  return {
    name: 'scheduled_publishing',
    title: 'The publication of drafts at their times',
    run: (signal, well) => {
      const work = (until: AbortSignal): Promise<void> => publishUntil(parts, until, well);
      return turn === undefined ? work(signal) : doInTurn(turn, work, signal);
    },
  };
}

async function publishUntil(
  parts: ScheduleParts,
  signal: AbortSignal,
  well: () => void,
): Promise<void> {
  const { store } = parts;
  let waiting: readonly Waiting[] = [];
  let seen: number | undefined;
  while (!signal.aborted) {
    store.refresh();
    const seq = store.seq();
    if (seen === undefined || hasDraftRow(store, seen, seq)) waiting = waitingDrafts(store);
    seen = seq;
    await publishDue(parts, waiting, signal);
    well();
    await waitForNext(parts, { seq, next: waiting[0]?.schedule }, signal);
  }
}

/** Waits for the next schedule, or until the log has more rows. */
async function waitForNext(
  { store, now }: ScheduleParts,
  { seq, next }: { readonly seq: number; readonly next: DraftSchedule | undefined },
  signal: AbortSignal,
): Promise<void> {
  if (next === undefined) {
    await store.waitForRows(seq, signal, backgroundPollMs);
    return;
  }
  // The clock may be moved meanwhile, and a timer takes no more than 2^31 ms.
  const ms = Math.min(Math.max(Date.parse(next.at) - now(), 0), scheduleLookMs);
  const turn = AbortSignal.any([signal, AbortSignal.timeout(ms)]);
  await store.waitForRows(seq, turn, backgroundPollMs);
}

/** Whether a row of the log after one seq, up to another, may have changed a draft. */
function hasDraftRow(store: Pick<Store, 'change'>, after: number, upTo: number): boolean {
  // The log of a restored backup is shorter.
  if (upTo < after || upTo - after > scheduleRowsMax) return true;
  for (let seq = after + 1; seq <= upTo; seq += 1) {
    if (store.change(seq)?.family === 'draft') return true;
  }
  return false;
}
