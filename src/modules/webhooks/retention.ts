import { eventLoop } from '../../core/fair/turns.ts';
import type { Log } from '../../core/report/log.ts';
import { Failure } from '../../core/values/failure.ts';
import type { Deliveries, Outage } from './log/deliveries.ts';
import type { Receivers } from './receivers.ts';
import type { SteadyClock } from './retry.ts';

/** How often the deliverer stores its clock. */
const clockNotedMs = 600_000;

/** The shortest gap in the stored clock that is an outage, in which retention does not count. */
export const outageMsMin = 3_600_000;

/** The number of newest outages that are stored. */
const outagesMax = 1_000;

/** How often expired messages are searched. */
const retentionCheckMs = 60_000;

interface RetentionParts {
  readonly deliveries: Deliveries;
  readonly receivers: Pick<Receivers, 'hookId'>;
  readonly log: Log;
  readonly clockMs: SteadyClock;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** `[webhook] retention`. */
  readonly retentionMs: () => number;
  readonly signal: AbortSignal;
}

/**
 * Removes messages that are older than `[webhook] retention`: their attempts, and events that wait
 * for a paused hook. It logs how many events were never delivered.
 */
export class Retention {
  readonly #parts: RetentionParts;
  #removing: Promise<void> | undefined;
  #lookedMs = -Infinity;
  #notedMs = -Infinity;

  constructor(parts: RetentionParts) {
    this.#parts = parts;
  }

  /** Stores the time in which no deliverer ran as an outage. Rejects if the write fails. */
  async begin(lastMs: number): Promise<void> {
    const { deliveries, clockMs, retentionMs } = this.#parts;
    const nowMs = clockMs();
    const known = deliveries.outages();
    const outages = outagesAt(nowMs, { lastMs, retentionMs: retentionMs(), known });
    await deliveries.storeClock(nowMs, outages);
    this.#notedMs = nowMs;
  }

  /** Starts removing expired messages, at most once per retentionCheckMs. */
  look(): void {
    const { clockMs, now } = this.#parts;
    const nowMs = clockMs();
    if (nowMs - this.#lookedMs <= retentionCheckMs) return;
    this.#lookedMs = nowMs;
    // A message must be old enough on both clocks, in case one was set forward.
    this.#removing ??= this.#remove(Math.min(now(), nowMs))
      .catch((error: unknown) => {
        if (error instanceof Failure) return;
        this.#parts.log.error({ err: error }, 'Cannot remove expired webhook messages.');
      })
      .finally(() => {
        this.#removing = undefined;
      });
  }

  /** Waits for a removal in progress. The caller does not call look again. */
  async end(): Promise<void> {
    await this.#removing;
    await this.#note().catch(() => undefined);
  }

  async #remove(nowMs: number): Promise<void> {
    const { deliveries, clockMs, retentionMs } = this.#parts;
    if (clockMs() - this.#notedMs > clockNotedMs) await this.#note();
    const beforeMs = expiryMs(nowMs, retentionMs(), deliveries.outages());
    await removeExpired(this.#parts, new Date(beforeMs).toISOString());
  }

  async #note(): Promise<void> {
    this.#notedMs = this.#parts.clockMs();
    await this.#parts.deliveries.storeClock(this.#notedMs);
  }
}

/**
 * The time before which messages have expired. `[webhook] retention` counts only time in which a
 * process delivers, so neither a long shutdown nor a wrong clock at the start removes events that
 * wait for a paused hook. All values are milliseconds; `nowMs` and the result are since 1970.
 */
export function expiryMs(nowMs: number, retentionMs: number, outages: readonly Outage[]): number {
  let [atMs, leftMs] = [nowMs, retentionMs];
  for (const { fromMs, toMs } of outages.toReversed()) {
    if (toMs > atMs) continue;
    if (atMs - toMs >= leftMs) break;
    leftMs -= atMs - toMs;
    atMs = fromMs;
  }
  return atMs - leftMs;
}

/**
 * The outages up to a start of the deliverer, without those that are too old to matter. `lastMs` is
 * its clock when it last ran, or 0 if it never ran.
 */
export function outagesAt(
  startMs: number,
  {
    lastMs,
    retentionMs,
    known,
  }: {
    readonly lastMs: number;
    readonly retentionMs: number;
    readonly known: readonly Outage[];
  },
): readonly Outage[] {
  const isNew = lastMs > 0 && startMs - lastMs >= outageMsMin;
  const all = isNew ? [...known, { fromMs: lastMs, toMs: startMs }] : known;
  const expiredMs = expiryMs(startMs, retentionMs, all);
  return all.filter(({ toMs }) => toMs > expiredMs).slice(-outagesMax);
}

async function removeExpired(
  { deliveries, receivers, log, signal }: RetentionParts,
  before: string,
): Promise<void> {
  const turns = eventLoop.turns('webhooks');
  for (const queue of deliveries.queues()) {
    if (turns.isOver()) await turns.next();
    let unsent = 0;
    while (!signal.aborted && deliveries.hasExpired(queue, before)) {
      unsent += (await deliveries.expire(queue, before)).unsent;
    }
    if (unsent === 0) continue;
    const fields = { hook: receivers.hookId(queue), events: unsent };
    log.warn(fields, 'Removed undelivered webhook events: their retention has expired.');
  }
}
