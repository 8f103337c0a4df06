import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';

/** A message from the beginning of its attempt until that is recorded. */
export interface OpenMessage {
  readonly version: Version;
  readonly ended: Promise<void>;
}

/** A version of a hook, by which messages are begun. */
export interface Version {
  readonly seq: number;
  /** Withdraws all that were begun by it. */
  readonly withdrawal: AbortController;
}

/** Makes the version of a hook that has a seq. */
export function newVersion(seq: number): Version {
  const withdrawal = new AbortController();
  setMaxListeners(0, withdrawal.signal);
  return { seq, withdrawal };
}

/** Lets messages end for a while, then withdraws them; resolves when all of them have ended. */
export async function endAll(open: readonly OpenMessage[], graceMs: number): Promise<void> {
  const all = Promise.all(open.map(({ ended }) => ended));
  const inTime = new AbortController();
  const grace = delay(graceMs, undefined, { signal: inTime.signal }).catch(() => undefined);
  await Promise.race([all, grace]);
  inTime.abort();
  for (const { version } of open) version.withdrawal.abort();
  await all;
}
