import { resolve } from 'node:path';
import { Failure } from '../../core/values/failure.ts';
import { writeLine, type DefineCommand } from '../../cli/command.ts';
import { openDataToRead } from '../../cli/open-data.ts';
import { configOption, jsonOption, requireConfig } from '../../cli/options.ts';
import { copiedText, createProgress } from '../../cli/progress.ts';
import { upkeep } from './upkeep.ts';

/**
 * `waymark backup`: copies the data folder, also while a server uses it; `serve` can use the copy.
 */
export const defineBackup: DefineCommand = (command, terminal) => {
  command
    .description('Copy the data folder in its current state, also while a server uses it.')
    .argument('<dir>', 'the folder to copy to; it must be empty or new')
    .addOption(configOption())
    .addOption(jsonOption())
    .action(async (target: string, options: { config?: string; json: boolean }) => {
      const config = await requireConfig(options.config, terminal);
      const folder = resolve(target);
      const store = await openDataToRead(config);
      const stop = stopOnSignal();
      const progress = createProgress(terminal.err, Date.now);
      try {
        const copied = await store.part(upkeep).backUp(folder, stop.signal, (files, fileBytes) => {
          progress.show(copiedText({ files, bytes: fileBytes }));
        });
        progress.clear();
        const { seq, bytes, files, fileBytes, damagedFiles } = copied;
        for (const name of damagedFiles) {
          const advice = '`check --data` names its assets: upload them again.';
          writeLine(terminal.err, `The file ${name} is damaged, also in the copy; ${advice}`);
        }
        if (damagedFiles.length > 0) terminal.exitCode = 1;
        const fields = { files, file_bytes: fileBytes, damaged_files: damagedFiles.length };
        if (options.json)
          writeLine(terminal.out, JSON.stringify({ folder, seq, bytes, ...fields }));
        else {
          const assets = files === 0 ? '' : `, and ${fileBytes} bytes in ${files} files of assets`;
          const what = `${bytes} bytes${assets}`;
          writeLine(terminal.err, `Copied everything up to change ${seq} to ${folder}: ${what}.`);
        }
      } finally {
        progress.clear();
        stop.ignore();
        await store.close();
      }
    });
};

/** The first SIGINT or SIGTERM cancels the backup and deletes it; a second one ends at once. */
function stopOnSignal(): { readonly signal: AbortSignal; ignore(): void } {
  const controller = new AbortController();
  const names = ['SIGINT', 'SIGTERM'] as const;
  const abort = (): void => {
    controller.abort(
      new Failure('unavailable', 'stopped by a signal; the incomplete backup was deleted'),
    );
  };
  for (const name of names) process.once(name, abort);
  return {
    signal: controller.signal,
    ignore() {
      for (const name of names) process.off(name, abort);
    },
  };
}
