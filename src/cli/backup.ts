import { resolve } from 'node:path';
import { Failure } from '../model/failure.ts';
import { say, UsageError, type Command } from './command.ts';
import { openExistingData } from './data.ts';
import { configOption, parseWords, requireConfig, requireNoMore } from './options.ts';

/** `waymark backup`: a copy of the data folder that `serve` can run from, made while it is used. */
export const backup: Command = {
  usage: 'backup DIR [--config FILE] [--json]',
  summary: 'copy the data as it is now into DIR, empty or new; a server may run meanwhile',
  async run(words, terminal) {
    const { values, positionals } = parseWords(words, {
      ...configOption,
      json: { type: 'boolean', default: false },
    });
    const [target, ...more] = positionals;
    if (target === undefined) throw new UsageError('Into which folder?');
    requireNoMore(more);
    const config = await requireConfig(values.config, terminal);
    const folder = resolve(target);
    const store = await openExistingData(config);
    const stop = stopOnSignal();
    try {
      const { seq, bytes } = await store.backUp(folder, stop.signal);
      if (values.json) say(terminal.out, JSON.stringify({ folder, seq, bytes }));
      else say(terminal.err, `${folder} has everything up to change ${seq}: ${bytes} bytes.`);
      return 0;
    } finally {
      stop.ignore();
      await store.close();
    }
  },
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
