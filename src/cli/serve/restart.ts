import { readFile, rm } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { claimantPid } from '../../core/log/folder/folder-claim.ts';
import { Failure } from '../../core/values/failure.ts';
import { type DefineCommand, writeLine } from '../command.ts';
import { takeOverMsMax } from '../limits.ts';
import { configOption, requireConfig } from '../options.ts';
import { type RestartOutcome, outcomeFile } from './predecessor.ts';

/** How often `restart` looks for the outcome. */
const restartPollMs = 50;

/**
 * `waymark restart`: replaces the server by a new process without closing a connection. The running
 * server starts it (predecessor.ts); this command sends the signal, and waits for the outcome.
 */
export const defineRestart: DefineCommand = (command, terminal) => {
  command
    .description(
      'Replace the running server by a new process, such as one of a newer version, without ' +
        'refusing a request. If the new process cannot serve, the old one continues.',
    )
    .addOption(configOption())
    .action(async (options: { config?: string }) => {
      const { server } = await requireConfig(options.config, terminal);
      const pid = await restart(server.data);
      writeLine(terminal.err, `Process ${pid} serves. The old one ends with its connections.`);
    });
};

/**
 * Restarts the server of a data folder; resolves to the pid of the new process. Rejects with
 * `not_found` if none runs, with `forbidden` if it runs as another user, and with `unavailable` and
 * the reason if the new process cannot serve.
 */
async function restart(data: string): Promise<number> {
  const pid = await claimantPid(data, 'serve');
  if (pid === undefined) {
    throw new Failure('not_found', `no server runs with the data folder ${data}: start one`);
  }
  const file = outcomeFile(data);
  await rm(file, { force: true });
  try {
    process.kill(pid, 'SIGUSR2');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'EPERM') throw error;
    throw new Failure('forbidden', `the server (pid ${pid}) runs as another user: use that user`);
  }
  const outcome = await outcomeOf(file, pid);
  if (outcome.state === 'done') return outcome.pid;
  throw new Failure('unavailable', `cannot restart: ${outcome.message}. The old process serves.`);
}

/** Waits for the outcome that the server writes. */
async function outcomeOf(file: string, pid: number): Promise<RestartOutcome> {
  const endMs = performance.now() + takeOverMsMax + restartPollMs;
  while (performance.now() < endMs) {
    const text = await readFile(file, 'utf8').catch(() => undefined);
    if (text !== undefined) return JSON.parse(text) as RestartOutcome;
    await delay(restartPollMs);
  }
  return { state: 'failed', message: `the server (pid ${pid}) does not answer` };
}
