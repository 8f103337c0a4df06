import { BackgroundTasks } from '../../../src/core/background/tasks.ts';
import { silentLog, type Log } from '../../../src/core/report/log.ts';

/** The work in the background of a test; `wait` replaces the pauses after errors. */
export function testTasks(
  log: Log = silentLog,
  wait?: (ms: number, signal: AbortSignal) => Promise<void>,
): BackgroundTasks {
  return new BackgroundTasks({
    ...{ log, now: Date.now, monotonicMs: () => performance.now(), wait },
  });
}
