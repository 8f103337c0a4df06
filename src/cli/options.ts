import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { InvalidArgumentError, Option } from 'commander';
import type { Config } from '../config/config.ts';
import { nearestName } from '../config/nearest.ts';
import { problemText, type ConfigProblem } from '../config/problem.ts';
import type { FolderSettings } from '../config/read.ts';
import { readWhenStable } from '../config/stable.ts';
import { Failure } from '../model/failure.ts';
import type { Terminal } from './command.ts';

/** Where an ini file is looked for, in this order, when neither option nor environment names it. */
const configPlaces = ['./server.ini', './conf/server.ini', '/etc/waymark/server.ini'];

/** `--config FILE`, as every command has it. */
export function configOption(): Option {
  return new Option(
    '--config <file>',
    'the ini file, or a folder that `serve DIR` serves; without it WAYMARK_CONFIG, then ' +
      configPlaces.join(', '),
  );
}

/** `--json`. */
export function jsonOption(): Option {
  return new Option('--json', 'print JSON').default(false);
}

/** An option with one of some values; another value gets the nearest one as a suggestion. */
export function choiceOption(
  flags: string,
  description: string,
  values: readonly string[],
): Option {
  return new Option(flags, description)
    .choices([...values])
    .argParser((value: string) => requireChoice(value, values));
}

/** One of some values. Throws InvalidArgumentError, with the nearest value, for another one. */
export function requireChoice(value: string, values: readonly string[]): string {
  if (values.includes(value)) return value;
  const nearest = nearestName(value, values);
  const hint = nearest === undefined ? '' : `Did you mean ${nearest}? `;
  throw new InvalidArgumentError(`${hint}Write one of ${values.join(', ')}.`);
}

/** The text of an option that takes a whole number. Throws InvalidArgumentError. */
export function wholeNumber(value: string): number {
  if (/^\d{1,15}$/.test(value)) return Number(value);
  throw new InvalidArgumentError('Write a whole number.');
}

/**
 * The ini file that `--config` or WAYMARK_CONFIG names, else the first of the usual places that
 * exists; undefined where there is none.
 */
export function findConfigFile(given: string | undefined, { env }: Terminal): string | undefined {
  const named = given ?? env.WAYMARK_CONFIG;
  if (named !== undefined && named !== '') return named;
  return configPlaces.find((place) => existsSync(place));
}

/** As findConfigFile; throws `not_found` with the places that were tried. */
export function requireConfigFile(given: string | undefined, terminal: Terminal): string {
  const file = findConfigFile(given, terminal);
  if (file !== undefined) return file;
  throw new Failure(
    'not_found',
    `there is no ini file: not ${configPlaces.join(', ')}. Name one by --config or ` +
      `WAYMARK_CONFIG; ${sample} is a commented one to start from. ` +
      '`waymark serve DIR` serves a folder without one.',
  );
}

/**
 * The configuration of the ini file in use, read once no program writes the file any more; throws a
 * Failure with every problem, one a line.
 */
export async function requireConfig(
  given: string | undefined,
  terminal: Terminal,
): Promise<Config> {
  return readWholeConfig(requireConfigFile(given, terminal), terminal);
}

/** As requireConfig, of a file, or a folder with its settings. */
export async function readWholeConfig(
  file: string,
  terminal: Terminal,
  folder: FolderSettings = {},
): Promise<Config> {
  const read = () => terminal.readConfig(file, { folder });
  const result = await readWhenStable({ files: [file], read, now: Date.now });
  if (result.ok) return result.config;
  throw new Failure('invalid', problemsText(file, result.problems));
}

/** What is wrong with an ini file, a line each; where there is none, how to come by one. */
export function problemsText(file: string, problems: readonly ConfigProblem[]): string {
  const text = problems.map(problemText).join('\n');
  if (existsSync(file)) return text;
  return `${text}; --config names another, and ${sample} is a commented one to start from`;
}

/** The ini file of the demo, in a clone as in the published package. */
const sample = fileURLToPath(new URL('../../conf/server.ini', import.meta.url));
