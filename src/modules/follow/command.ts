import { Option } from 'commander';
import { type DefineCommand, type Terminal, UsageError, writeLine } from '../../cli/command.ts';
import { wholeNumber } from '../../cli/options.ts';
import { createProgress } from '../../cli/progress.ts';
import {
  type ApiTarget,
  type ApiTargetOptions,
  apiOptions,
  apiTargetOf,
  callApi,
} from '../../cli/remote/api-client.ts';
import type { JsonObject } from '../../core/values/json/json.ts';
import { type FollowReport, type FollowTarget, LineTarget, followTables } from './follow-tables.ts';
import { PostgresTarget } from './postgres.ts';

interface FollowCommandOptions extends ApiTargetOptions {
  readonly to: string;
  readonly table?: readonly string[];
  readonly schema: string;
  readonly fromSeq?: number;
  readonly restart: boolean;
}

/** `waymark follow`: copies changes of the rows of tables to PostgreSQL, until it is stopped. */
export const defineFollow: DefineCommand = (command, terminal) => {
  command
    .description(
      'Copy each change of the rows of tables to PostgreSQL, exactly once and in order, until ' +
        'the command is stopped. It continues where it ended. The API key needs the scope ' +
        'record.read; without --table, also admin.',
    )
    .requiredOption('--to <url>', 'postgres://user@host/database, or - for lines of JSON')
    .option('--table <name...>', 'the tables; by default all that exist when it starts')
    .option('--schema <name>', 'the schema of PostgreSQL that gets the tables', 'waymark')
    .addOption(
      new Option('--from-seq <seq>', 'with --to -: only changes after this seq').argParser(
        wholeNumber,
      ),
    )
    .option('--restart', 'drop the copied tables, and copy them from the beginning', false);
  for (const option of apiOptions()) command.addOption(option);
  command.action(async (options: FollowCommandOptions) => {
    const api = await apiTargetOf(options, terminal);
    const stop = new AbortController();
    const end = (): void => {
      stop.abort();
    };
    process.once('SIGINT', end).once('SIGTERM', end);
    try {
      const tables = options.table ?? (await tableNames(api));
      const target = await targetOf(options, tables, terminal);
      const report = reportTo(terminal, options.to !== '-');
      await followTables({ ...api, tables, target, report, signal: stop.signal });
    } finally {
      process.off('SIGINT', end).off('SIGTERM', end);
    }
  });
};

async function targetOf(
  { to, schema, fromSeq, restart }: FollowCommandOptions,
  tables: readonly string[],
  { out }: Terminal,
): Promise<FollowTarget> {
  if (to === '-') {
    if (restart) throw new UsageError('--restart is for PostgreSQL: use --from-seq 0.');
    return new LineTarget(out, fromSeq ?? 0);
  }
  if (!/^postgres(?:ql)?:\/\//.test(to) || !URL.canParse(to)) {
    throw new UsageError(
      `${JSON.stringify(to)} is not the URL of a database: write postgres://user@host/database.`,
    );
  }
  if (fromSeq !== undefined) {
    throw new UsageError('--from-seq is for --to -: a database knows what it has.');
  }
  const target = new PostgresTarget({ url: to, schema });
  if (!restart) return target;
  await target.open();
  for (const table of tables) await target.restart(table);
  return target;
}

async function tableNames(api: ApiTarget): Promise<readonly string[]> {
  const names: string[] = [];
  let after: string | null = '';
  while (after !== null) {
    const v: JsonObject = after === '' ? {} : { after };
    const { data } = await callApi(api, 'table.list', { v });
    const { rows, next } = data;
    names.push(...rows.map(({ name }) => name));
    after = next;
  }
  if (names.length > 0) return names;
  throw new UsageError('the server has no tables: name those to come by --table.');
}

function reportTo({ err }: Terminal, hasProgress: boolean): FollowReport {
  const progress = createProgress(err, Date.now);
  return {
    applied(changes, seq) {
      if (hasProgress) progress.show(`${changes} changes copied, up to seq ${seq}`);
    },
    retrying(why, delayMs) {
      progress.clear();
      writeLine(err, `${why} Trying again in ${delayMs / 1000} s.`);
    },
  };
}
