import { now } from '../model/clock.ts';
import { configJson, describeConfig } from '../config/describe.ts';
import { findDoubtful } from '../config/doubtful.ts';
import { findIneffective } from '../config/ineffective.ts';
import { checkData } from './check-data.ts';
import { say, type DefineCommand, type Terminal } from './command.ts';
import { configOption, jsonOption, problemsText, requireConfigFile } from './options.ts';

interface CheckOptions {
  readonly config?: string;
  readonly data: boolean;
  readonly json: boolean;
}

/**
 * `waymark check`: validates the ini file and prints the configuration that it comes to; with
 * `--data` it looks at the data instead.
 */
export const defineCheck: DefineCommand = (command, terminal) => {
  command
    .description('Validate the ini file, and print the configuration that it comes to.')
    .option('--data', 'verify the data instead: its indexes against its log', false)
    .addOption(configOption())
    .addOption(jsonOption())
    .action(async (options: CheckOptions) => {
      terminal.exitCode = await check(options, terminal);
    });
};

async function check(options: CheckOptions, terminal: Terminal): Promise<number> {
  const file = requireConfigFile(options.config, terminal);
  const result = await terminal.readConfig(file, { folder: {} });
  if (options.data && result.ok) return checkData(result.config, terminal, options);
  const warnings = result.ok
    ? [...findIneffective(result.config), ...(await findDoubtful(result.config, now()))]
    : [];
  if (options.json) {
    const answer = result.ok
      ? { ok: true, config: configJson(result.config), warnings }
      : { ok: false, problems: result.problems };
    say(terminal.out, JSON.stringify(answer, undefined, 2));
  } else if (result.ok) {
    terminal.out.write(describeConfig(result.config));
    for (const said of warnings) say(terminal.err, said);
    say(terminal.err, `${file} is fine.`);
  } else {
    say(terminal.err, problemsText(file, result.problems));
  }
  return result.ok ? 0 : 1;
}
