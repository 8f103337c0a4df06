import { resolve } from 'node:path';
import { newId, now } from '../model/clock.ts';
import { purgeSecrets } from '../store/folder/purge.ts';
import { say, UsageError, type DefineCommand, type Terminal } from './command.ts';
import { requireData } from '../data.ts';
import { configOption, jsonOption, requireConfig } from './options.ts';

interface PurgeOptions {
  readonly config?: string;
  readonly data?: string;
  readonly rule: readonly string[];
  readonly hook: readonly string[];
  readonly all: boolean;
  readonly dryRun: boolean;
  readonly json: boolean;
}

/**
 * `waymark purge-secret`: takes header values that rules and hooks have no more, and secrets that
 * hooks sign with no more, out of the log and the data file; a row of the log says so.
 */
export const definePurgeSecret: DefineCommand = (command, terminal) => {
  command
    .description(
      'Replace header values that page rules and hooks have no more, and secrets of hooks that ' +
        'were rotated, by [purged] in the log, and write the data file anew. ' +
        'Stop the server first.',
    )
    .option('--rule <id>', 'a page rule; may be repeated', collect, [])
    .option('--hook <id>', 'a hook; may be repeated', collect, [])
    .option('--all', 'all page rules and hooks', false)
    .option('--data <dir>', 'a data folder, such as a backup, in place of that of the ini file')
    .option('--dry-run', 'say what would be purged, and change nothing', false)
    .addOption(configOption())
    .addOption(jsonOption())
    .action(async (options: PurgeOptions) => {
      await purge(options, terminal);
    });
};

function collect(id: string, before: readonly string[]): readonly string[] {
  return [...before, id];
}

async function purge(options: PurgeOptions, terminal: Terminal): Promise<void> {
  const { rule, hook, all, dryRun, json, data } = options;
  const ids = new Set([...rule, ...hook]);
  if (all === ids.size > 0) throw new UsageError('Give --rule, --hook, or --all alone.');
  const folder =
    data === undefined
      ? (await requireConfig(options.config, terminal)).server.data
      : resolve(data);
  await requireData(folder);
  const { rows, seq } = await purgeSecrets({
    ...{ folder, now, newId, dryRun, by: 'waymark purge-secret' },
    selects: (id) => all || ids.has(id),
  });
  if (json) say(terminal.out, JSON.stringify({ folder, rows, seq: seq ?? null }));
  else say(terminal.err, textOf(rows, { folder, dryRun, seq }));
}

function textOf(
  rows: readonly number[],
  { folder, dryRun, seq }: { folder: string; dryRun: boolean; seq: number | undefined },
): string {
  if (rows.length === 0) return `${folder} has no such secret.`;
  const listed = rows.slice(0, rowsListed).join(', ');
  const more = rows.length > rowsListed ? ` and ${rows.length - rowsListed} more` : '';
  const found = `${rows.length} changes (seq ${listed}${more})`;
  if (dryRun) return `${found} have secrets that would be purged.`;
  return (
    `${found} had secrets, which are purged; change ${seq} says so. ` +
    'Backups from before still have them: purge those with --data, or delete them.'
  );
}

const rowsListed = 20;
