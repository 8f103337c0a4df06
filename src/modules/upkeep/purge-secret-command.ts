import { resolve } from 'node:path';
import { newId, now } from '../../core/values/clock.ts';
import { purgeSecrets } from './purge.ts';
import { writeLine, UsageError, type DefineCommand, type Terminal } from '../../cli/command.ts';
import { openData, requireData } from '../../cli/open-data.ts';
import { configOption, jsonOption, requireConfig } from '../../cli/options.ts';

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
 * `waymark purge-secret`: removes header values that rules and hooks had in the past, and rotated
 * secrets of hooks, from the log and the data file, and adds a row about it to the log.
 */
export const definePurgeSecret: DefineCommand = (command, terminal) => {
  command
    .description(
      'Replace header values that page rules and hooks had in the past, and rotated secrets of ' +
        'hooks, by [purged] in the log, and rewrite the data file. Stop the server first.',
    )
    .option('--rule <id>', 'a page rule; may be repeated', collect, [])
    .option('--hook <id>', 'a hook; may be repeated', collect, [])
    .option('--all', 'all page rules and hooks', false)
    .option('--data <dir>', 'a data folder, such as a backup, instead of that of the ini file')
    .option('--dry-run', 'only show what would be purged', false)
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
  if (all === ids.size > 0)
    throw new UsageError('give --rule and --hook with ids, or --all alone.');
  const folder =
    data === undefined
      ? (await requireConfig(options.config, terminal)).server.data
      : resolve(data);
  await requireData(folder);
  const { rows, seq } = await purgeSecrets({
    ...{ folder, now, newId, dryRun, by: 'waymark purge-secret' },
    openStore: openData,
    selects: (id) => all || ids.has(id),
  });
  if (json) writeLine(terminal.out, JSON.stringify({ folder, rows, seq: seq ?? null }));
  else writeLine(terminal.err, textOf(rows, { folder, dryRun, seq }));
}

function textOf(
  rows: readonly number[],
  { folder, dryRun, seq }: { folder: string; dryRun: boolean; seq: number | undefined },
): string {
  if (rows.length === 0) return `${folder} has no secret to purge.`;
  const listed = rows.slice(0, rowsListed).join(', ');
  const more = rows.length > rowsListed ? ` and ${rows.length - rowsListed} more` : '';
  const changes = rows.length === 1 ? 'one change' : `${rows.length} changes`;
  const found = `${changes} (seq ${listed}${more})`;
  if (dryRun) return `Would purge secrets in ${found}.`;
  return (
    `Purged secrets in ${found}, and recorded it as change ${seq}. ` +
    'Older backups still have them: purge those with --data, or delete them.'
  );
}

const rowsListed = 20;
