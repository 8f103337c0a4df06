import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { InvalidArgumentError, Option } from 'commander';
import type { Config } from '../core/config/config.ts';
import { type ConfigProblem, problemText } from '../core/config/problem.ts';
import type { FolderSettings } from '../core/config/read.ts';
import { readWhenStable } from '../core/config/watch.ts';
import { now } from '../core/values/clock.ts';
import { Failure } from '../core/values/failure.ts';
import { nearestName } from '../core/values/nearest.ts';
import { durationMs } from '../core/values/units.ts';
import { packageFolder } from '../core/values/version.ts';
import type { Terminal } from './command.ts';

/** The places of the ini file, in this order, if neither option nor environment names it. */
const configPlaces = ['./server.ini', './conf/server.ini', '/etc/waymark/server.ini'];

/** The option `--config FILE` of all commands. */
export function configOption(): Option {
  return new Option(
    '--config <file>',
    'the ini file, or a folder that `serve DIR` serves; default: WAYMARK_CONFIG, or the first ' +
      `of ${configPlaces.join(', ')}`,
  );
}

/** The option `--json`. */
export function jsonOption(): Option {
  return new Option('--json', 'print JSON').default(false);
}

/** An option with a list of values; for another value, the message suggests the nearest one. */
export function choiceOption(
  flags: string,
  description: string,
  values: readonly string[],
): Option {
  return new Option(flags, description)
    .choices([...values])
    .argParser((value: string) => requireChoice(value, values));
}

/** Checks that a value is in a list. Throws InvalidArgumentError with the nearest value. */
export function requireChoice(value: string, values: readonly string[]): string {
  if (values.includes(value)) return value;
  const nearest = nearestName(value, values);
  const hint = nearest === undefined ? '' : `Did you mean ${nearest}? `;
  throw new InvalidArgumentError(`${hint}Write one of ${values.join(', ')}.`);
}

/** Parses a whole number of an option. Throws InvalidArgumentError. */
export function wholeNumber(value: string): number {
  if (/^\d{1,15}$/.test(value)) return Number(value);
  throw new InvalidArgumentError('Write a whole number.');
}

/**
 * The ini file that `--config` or WAYMARK_CONFIG names, or else the first of the usual places that
 * exists; undefined if there is none.
 */
export function findConfigFile(given: string | undefined, { env }: Terminal): string | undefined {
  const named = given ?? env.WAYMARK_CONFIG;
  if (named !== undefined && named !== '') return named;
  return configPlaces.find((place) => existsSync(place));
}

/** As findConfigFile, but throws `not_found` with the places if there is none. */
export function requireConfigFile(given: string | undefined, terminal: Terminal): string {
  const file = findConfigFile(given, terminal);
  if (file !== undefined) return file;
  throw new Failure(
    'not_found',
    `there is no ini file in ${configPlaces.join(', ')}. Name one by --config or ` +
      `WAYMARK_CONFIG; ${sampleFile} is a sample with comments. ` +
      '`waymark serve DIR` serves a folder without an ini file.',
  );
}

/**
 * Reads the configuration of the ini file in use, once no program writes the file. Rejects with a
 * Failure that has all problems, each on a line.
 */
export async function requireConfig(
  given: string | undefined,
  terminal: Terminal,
): Promise<Config> {
  return readWholeConfig(requireConfigFile(given, terminal), terminal);
}

/** As requireConfig, for a given file, or for a folder with its settings. */
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

/** The problems of an ini file, each on a line; for a missing file, how to get one. */
export function problemsText(file: string, problems: readonly ConfigProblem[]): string {
  const text = problems.map(problemText).join('\n');
  if (existsSync(file)) return text;
  return `${text}; name another one by --config, or copy the sample ${sampleFile}`;
}

/** The ini file of the demo, in a clone and in the published package. */
const sampleFile = join(packageFolder, 'conf/server.ini');

/** The latest time of a Date: a later one is refused as no date-time. */
const latestMs = 8.64e15;

/** The moment of --until: a time such as 90d counts from now. */
export function momentOf(text: string): string {
  const ms = durationMs(text);
  return ms === undefined ? text : new Date(Math.min(now() + ms, latestMs)).toISOString();
}
