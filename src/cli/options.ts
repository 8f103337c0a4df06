import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs, type ParseArgsConfig } from 'node:util';
import type { Config, ConfigProblem } from '../config/config.ts';
import { problemText } from '../config/problem.ts';
import { readWhenStable } from '../config/stable.ts';
import { Failure } from '../model/failure.ts';
import { UsageError, type Terminal } from './command.ts';

/** The option that every command takes. */
export const configOption = { config: { type: 'string', default: 'conf/server.ini' } } as const;

/** Splits a command's words into options and the rest. Throws UsageError. */
export function parseWords<const Options extends NonNullable<ParseArgsConfig['options']>>(
  words: readonly string[],
  options: Options,
) {
  try {
    return parseArgs({ args: [...words], options, allowPositionals: true, strict: true });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

/**
 * The configuration that `--config` names, read once no program writes the file any more; throws a
 * Failure with every problem, one a line.
 */
export async function requireConfig(file: string, terminal: Terminal): Promise<Config> {
  const read = () => terminal.readConfig(file);
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

/** Refuses words that nothing was made of. */
export function requireNoMore(words: readonly string[]): void {
  if (words.length > 0) throw new UsageError(`What is ${JSON.stringify(words[0])}?`);
}
