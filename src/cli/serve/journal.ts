import { fstatSync } from 'node:fs';
import type { Terminal } from '../command.ts';

/** Whether journald reads the standard output of this process (systemd.exec(5)). */
export function readsJournal(env: Terminal['env'], output = standardOutput): boolean {
  const journal = env.JOURNAL_STREAM;
  if (journal === undefined) return false;
  const { dev, ino } = fstatSync(output);
  return journal === `${dev}:${ino}`;
}

const standardOutput = 1;
