import { setImmediate as nextTurn } from 'node:timers/promises';
import { Failure } from '../model/failure.ts';
import { retentionLookMs, retentionQueuesAtOnce } from '../model/limits.ts';
import type { Log } from '../observability/log.ts';
import type { Deliveries, Outage } from '../store/deliveries.ts';
import type { SteadyClock } from './clock.ts';
import { clockNotedMs, outageMsMin, outagesMax } from './limits.ts';
import type { Receivers } from './receivers.ts';

/** What keeping messages for a time stands on. */
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
 * Removes messages that were kept for `[webhook] retention`: attempts at them, and what waits for a
 * hook that is paused. The log says what was never delivered.
 */
export class Retention {
  readonly #parts: RetentionParts;
  #removing: Promise<void> | undefined;
  #lookedMs = -Infinity;
  #notedMs = -Infinity;

  constructor(parts: RetentionParts) {
    this.#parts = parts;
  }

  /** Notes the time since the deliverer's clock last ran. Rejects when that cannot be written. */
  async begin(lastMs: number): Promise<void> {
    const { deliveries, clockMs, retentionMs } = this.#parts;
    const nowMs = clockMs();
    const known = deliveries.outages();
    const outages = outagesAt(nowMs, { lastMs, retentionMs: retentionMs(), known });
    await deliveries.noteClock(nowMs, outages);
    this.#notedMs = nowMs;
  }

  /** Removes what is old enough, where that was last done some time ago. */
  look(): void {
    const { clockMs, now } = this.#parts;
    const nowMs = clockMs();
    if (nowMs - this.#lookedMs <= retentionLookMs) return;
    this.#lookedMs = nowMs;
    // A clock that was put forward takes nothing away that is not old enough by the other one.
    this.#removing ??= this.#remove(Math.min(now(), nowMs))
      .catch((error: unknown) => {
        if (error instanceof Failure) return;
        this.#parts.log.error({ err: error }, 'Cannot remove expired webhook messages.');
      })
      .finally(() => {
        this.#removing = undefined;
      });
  }

  /** Resolves when nothing is being removed any more; look is not called again. */
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
    await this.#parts.deliveries.noteClock(this.#notedMs);
  }
}

/**
 * The time before which messages have been kept for long enough: `[webhook] retention` counts only
 * while a process delivers. So neither a server that was off for long nor a clock that was wrong at
 * its start takes events away that wait for a paused hook. All in milliseconds; `nowMs` and the
 * result since 1970.
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
 * The outages up to a start of the deliverer, less those that matter no more; `lastMs` is its clock
 * when it last ran, 0 if it never did.
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
  for (const [at, queue] of deliveries.queues().entries()) {
    if (at % retentionQueuesAtOnce === 0) await nextTurn();
    let unsent = 0;
    while (!signal.aborted && deliveries.hasExpired(queue, before)) {
      unsent += (await deliveries.expire(queue, before)).unsent;
    }
    if (unsent === 0) continue;
    const told = { hook: receivers.hookId(queue), events: unsent };
    log.warn(told, 'events of a webhook were kept for as long as they are, and not delivered');
  }
}
