import type { Config } from '../config/config.ts';
import { configJson, describeConfig } from '../config/describe.ts';
import { allCertificateWarnings, ineffectiveSettings } from '../config/warnings.ts';
import { now } from '../model/clock.ts';
import { Failure } from '../model/failure.ts';
import type { Difference } from '../store/store.ts';
import { writeLine, type DefineCommand, type Terminal } from './command.ts';
import { openDataToRead } from '../data.ts';
import { differencesKeptMax } from './limits.ts';
import { configOption, jsonOption, problemsText, requireConfigFile } from './options.ts';
import { createProgress } from './progress.ts';

interface CheckOptions {
  readonly config?: string;
  readonly data: boolean;
  readonly json: boolean;
}

/**
 * `waymark check`: validates the ini file and prints the configuration with all defaults; with
 * `--data`, it verifies the data instead.
 */
export const defineCheck: DefineCommand = (command, terminal) => {
  command
    .description('Validate the ini file, and print the configuration with all defaults.')
    .option('--data', 'verify the data instead: compare its indexes with its log', false)
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
    ? [
        ...ineffectiveSettings(result.config),
        ...(await allCertificateWarnings(result.config, now())),
      ]
    : [];
  if (options.json) {
    const answer = result.ok
      ? { ok: true, config: configJson(result.config), warnings }
      : { ok: false, problems: result.problems };
    writeLine(terminal.out, JSON.stringify(answer, undefined, 2));
  } else if (result.ok) {
    terminal.out.write(describeConfig(result.config));
    for (const warning of warnings) writeLine(terminal.err, warning);
    writeLine(terminal.err, `${file} is valid.`);
  } else {
    writeLine(terminal.err, problemsText(file, result.problems));
  }
  return result.ok ? 0 : 1;
}

/**
 * `waymark check --data`: checks the data file, replays the log, and reports where indexes differ
 * from it. Resolves to the exit code.
 */
async function checkData(
  config: Config,
  terminal: Terminal,
  { json }: { readonly json: boolean },
): Promise<number> {
  try {
    return await verifyData(config, terminal, json);
  } catch (error) {
    if (!json || !(error instanceof Failure)) throw error;
    writeLine(terminal.out, JSON.stringify({ ok: false, problem: error.message }, undefined, 2));
    return 1;
  }
}

async function verifyData(config: Config, { out, err }: Terminal, json: boolean): Promise<number> {
  const store = await openDataToRead(config);
  const progress = createProgress(err, Date.now);
  const shown: Difference[] = [];
  let count = 0;
  try {
    const { seq, rules } = store.counts();
    for await (const { checked, of, differences } of store.verify()) {
      count += differences.length;
      shown.push(...differences.slice(0, differencesKeptMax - shown.length));
      progress.show(`${Math.min(100, Math.floor((checked / of) * 100))} % of ${of} entries`);
    }
    progress.clear();
    const ok = count === 0;
    if (json) {
      writeLine(out, JSON.stringify({ ok, seq, rules, count, differences: shown }, undefined, 2));
      return ok ? 0 : 1;
    }
    for (const { database, what } of shown) writeLine(err, `${database}: ${what}`);
    if (count > shown.length) writeLine(err, `and ${count - shown.length} more`);
    const places = count === 1 ? 'one place' : `${count} places`;
    const verdict = ok
      ? `The data is correct: ${rules} page rules from a log of ${seq} changes.`
      : `The data differs from its log of ${seq} changes in ${places}. Restore a backup.`;
    writeLine(err, verdict);
    return ok ? 0 : 1;
  } finally {
    progress.clear();
    await store.close();
  }
}
