import type { Task } from '../../core/background/tasks.ts';
import type { Config, ConfigResult } from '../../core/config/config.ts';

/**
 * The results of reading the ini file after `current`, until the signal aborts; calls `watching`
 * once no later change can be missed.
 */
export type ConfigResults = (given: {
  readonly current: ConfigResult;
  readonly signal: AbortSignal;
  readonly watching: () => void;
}) => AsyncIterable<ConfigResult> | Iterable<ConfigResult>;

/**
 * Reloads a server with each result. After an error it begins again with the configuration in use,
 * so that no change is missed. `began` is called once it watches, and after each error.
 */
export function configurationWatch({
  config,
  results,
  reload,
  began,
}: {
  /** That of the start. */
  readonly config: Config;
  readonly results: ConfigResults;
  readonly reload: (result: ConfigResult) => void;
  readonly began?: () => void;
}): Task {
  let current: ConfigResult = { ok: true, config };
  return {
    name: 'configuration_watch',
    title: 'The watch of the ini file',
    meanwhile: 'Its changes have no effect.',
    failed: () => began?.(),
    async run(signal, well) {
      const watching = (): void => {
        well();
        began?.();
      };
      for await (const result of results({ current, signal, watching })) {
        reload(result);
        current = result;
      }
    },
  };
}
