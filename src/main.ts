import type { Config, ConfigResult } from './core/config/config.ts';
import { backgroundTasks } from './cli/serve/assembly/background.ts';
import { makeFirstKey } from './cli/serve/assembly/first-start.ts';
import type { Logs } from './core/report/log.ts';
import { prepareData, type FolderOptions } from './cli/serve/assembly/prepare-data.ts';
import type { PortOptions } from './core/server/server.ts';
import { startServing, type ServingOptions } from './cli/serve/assembly/serving-process.ts';

/** A running Waymark. */
export interface Waymark {
  /** The URLs of its listeners. */
  readonly addresses: readonly string[];
  /** The admin key that a first start has created; it cannot be shown again. */
  readonly firstKey: string | undefined;
  /**
   * Uses a changed configuration for the next requests; running requests keep the old one. An
   * invalid one changes only what server.status reports.
   */
  reload(result: ConfigResult): void;
  /** Resolves when the server has to be started again to use a new copy of its centre's log. */
  readonly copied: Promise<void>;
  /** Lets running requests end for `graceMs`, then cuts them off; resolves to how many were cut. */
  stop(graceMs: number): Promise<{ readonly cut: number }>;
  /** See RunningServer.drain. */
  drain(graceMs: number, signal: AbortSignal): Promise<void>;
}

type StartOptions = Pick<ServingOptions, 'docsFolder' | 'tasks'>;

/**
 * Starts the server. Rejects with a Failure, and leaves nothing open, if the data folder is in use,
 * locked or not Waymark's, a port is taken, or the rules to import have mistakes.
 */
export async function startWaymark(
  config: Config,
  logs: Logs,
  given: FolderOptions & PortOptions & StartOptions = {},
): Promise<Waymark> {
  const { docsFolder, predecessor, signal, ...others } = given;
  const { tasks = backgroundTasks(logs), ...ports } = others;
  const prepared = await prepareData(config, logs, { predecessor, signal, tasks });
  try {
    const { store, notices } = prepared;
    const more = { ports, ...(docsFolder && { docsFolder }) };
    const options = { store, notices, tasks, isPrimary: true, ...more };
    const running = await startServing(config, logs, options);
    await prepared.takeOver();
    return {
      addresses: running.addresses,
      // Last: a key that is created before a failure of the start would never be shown.
      firstKey: config.node.central === undefined ? await makeFirstKey(store) : undefined,
      copied: prepared.copied,
      reload: (result) => {
        running.reload(result);
      },
      drain(graceMs, signal) {
        prepared.handOver();
        return running.drain(graceMs, signal);
      },
      async stop(graceMs) {
        const cut = await running.stop(graceMs);
        await prepared.release();
        return { cut };
      },
    };
  } catch (error) {
    await prepared.release();
    throw error;
  }
}
