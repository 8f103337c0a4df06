import { writeSync } from 'node:fs';
import { inspect } from 'node:util';
import { isOfModule } from '../../core/custom/module-guard.ts';

/**
 * Ends this process by SIGKILL. `process.exit` waits for the threads of libuv, and one of them may
 * wait for this thread in a transaction of lmdb: the process would stay, with the write lock of
 * the data.
 */
export function endAtOnce(): void {
  process.kill(process.pid, 'SIGKILL');
}

/**
 * Ends this process at once when an exception is caught nowhere, once its text is on standard
 * error. Node itself would use `process.exit`. One of a module of `[module.<name>]` is only logged.
 */
export function endOnBug(): void {
  process.on('uncaughtException', (error) => {
    if (isOfModule(error)) return;
    try {
      writeSync(process.stderr.fd, `${inspect(error)}\n`);
    } finally {
      endAtOnce();
    }
  });
}
