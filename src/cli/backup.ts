import { resolve } from 'node:path';
import { Failure } from '../model/failure.ts';
import { say, type DefineCommand } from './command.ts';
import { openDataToRead } from '../data.ts';
import { configOption, jsonOption, requireConfig } from './options.ts';

/** `waymark backup`: a copy of the data folder that `serve` can run from, made while it is used. */
export const defineBackup: DefineCommand = (command, terminal) => {
  command
    .description('Copy the data as it is at this moment; a server may run on it meanwhile.')
    .argument('<dir>', 'the folder to copy to, empty or new')
    .addOption(configOption())
    .addOption(jsonOption())
    .action(async (target: string, options: { config?: string; json: boolean }) => {
      const config = await requireConfig(options.config, terminal);
      const folder = resolve(target);
      const store = await openDataToRead(config);
      const stop = stopOnSignal();
      try {
        const { seq, bytes } = await store.backUp(folder, stop.signal);
        if (options.json) say(terminal.out, JSON.stringify({ folder, seq, bytes }));
        else say(terminal.err, `${folder} has everything up to change ${seq}: ${bytes} bytes.`);
      } finally {
        stop.ignore();
        await store.close();
      }
    });
};

/** The first SIGINT or SIGTERM gives the backup up and clears it away, a second ends at once. */
function stopOnSignal(): { readonly signal: AbortSignal; ignore(): void } {
  const controller = new AbortController();
  const names = ['SIGINT', 'SIGTERM'] as const;
  const abort = (): void => {
    controller.abort(new Failure('unavailable', 'stopped; nothing is left of the backup'));
  };
  for (const name of names) process.once(name, abort);
  return {
    signal: controller.signal,
    ignore() {
      for (const name of names) process.off(name, abort);
    },
  };
}
