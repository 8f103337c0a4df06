import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';

/** A message from the start of its attempt until the attempt is recorded. */
export interface OpenMessage {
  readonly version: Version;
  readonly ended: Promise<void>;
}

/** A version of a hook; each message in flight belongs to one. */
export interface Version {
  readonly seq: number;
  /** Cancels all attempts that began with this version. */
  readonly withdrawal: AbortController;
}

/** Makes the version of a hook with a seq. */
export function newVersion(seq: number): Version {
  const withdrawal = new AbortController();
  setMaxListeners(0, withdrawal.signal);
  return { seq, withdrawal };
}

/** Waits up to graceMs for messages in flight, then cancels them; resolves when all have ended. */
export async function endAll(open: readonly OpenMessage[], graceMs: number): Promise<void> {
  const all = Promise.all(open.map(({ ended }) => ended));
  const inTime = new AbortController();
  const grace = delay(graceMs, undefined, { signal: inTime.signal }).catch(() => undefined);
  await Promise.race([all, grace]);
  inTime.abort();
  for (const { version } of open) version.withdrawal.abort();
  await all;
}
