import { configJson, describeConfig } from '../config/describe.ts';
import { findDoubtful } from '../config/doubtful.ts';
import { findIneffective } from '../config/ineffective.ts';
import { checkData } from './check-data.ts';
import { say, type Command } from './command.ts';
import { configOption, parseWords, problemsText, requireNoMore } from './options.ts';

/**
 * `waymark check`: validates the ini file and prints the configuration that it comes to; with
 * `--data` it looks at the data instead.
 */
export const check: Command = {
  usage: 'check [--data] [--config FILE] [--json]',
  summary:
    'validate the ini file and print the effective configuration; with --data hold everything ' +
    'that is made of the log against it',
  async run(words, terminal) {
    const { values, positionals } = parseWords(words, {
      ...configOption,
      data: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
    });
    requireNoMore(positionals);
    const result = await terminal.readConfig(values.config);
    if (values.data && result.ok) return checkData(result.config, terminal, values);
    const warnings = result.ok
      ? [...findIneffective(result.config), ...(await findDoubtful(result.config, Date.now()))]
      : [];
    if (values.json) {
      const answer = result.ok
        ? { ok: true, config: configJson(result.config), warnings }
        : { ok: false, problems: result.problems };
      say(terminal.out, JSON.stringify(answer, undefined, 2));
    } else if (result.ok) {
      terminal.out.write(describeConfig(result.config));
      for (const said of warnings) say(terminal.err, said);
      say(terminal.err, `${values.config} is fine.`);
    } else {
      say(terminal.err, problemsText(values.config, result.problems));
    }
    return result.ok ? 0 : 1;
  },
};
