import { parseDistinct } from '../../core/values/json/parse.ts';
import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { Option, type Command } from 'commander';
import type { Problem } from '../../core/values/failure.ts';
import { withoutControls } from '../../core/report/escape.ts';
import { isJsonObject, type JsonObject } from '../../core/values/json/json.ts';
import { writeLine, UsageError, type DefineCommand, type Terminal } from '../command.ts';
import { choiceOption, jsonOption, wholeNumber } from '../options.ts';
import {
  apiTargetOf,
  apiOptions,
  draftOption,
  type ApiTarget,
  type ApiTargetOptions,
} from './api-client.ts';

/** The result of a subcommand, or one page of it. */
export interface SubcommandResult {
  /** The envelope as the API returned it. */
  readonly answer: JsonObject;
  /** The output for people and scripts, without `--json`. */
  readonly lines: readonly string[];
  /** Further lines on standard error. */
  readonly notes?: readonly string[];
  /** The exit code; by default 0. */
  readonly code?: number;
}

/** The inputs of a subcommand. */
export interface SubcommandInput {
  readonly api: ApiTarget;
  readonly vk: string | undefined;
  /** The values of options, by the names of the API's input fields. */
  readonly input: JsonObject;
  /** Standard input. */
  readonly stdin: () => AsyncIterable<Uint8Array>;
}

/** An option for a field of the operation's input. */
export interface InputOption {
  readonly description: string;
  /** The placeholder of its value; a flag has none. */
  readonly value?: string;
  /** Whether the value is a whole number. */
  readonly isNumber?: boolean;
  /** The allowed values, if there is a list. */
  readonly values?: readonly string[];
}

/** A subcommand that calls the HTTP API. */
export interface Subcommand {
  readonly summary: string;
  /** Its arguments in commander's syntax (`<id>`, `[url]`), with their descriptions. */
  readonly args?: Readonly<Record<string, string>>;
  /** Its options by the names of input fields: `as_of` becomes `--as-of`. */
  readonly options?: Readonly<Record<string, InputOption>>;
  /** Whether it has the option `--vk`. */
  readonly writes?: boolean;
  /** Whether it has the option `--draft`. */
  readonly inDrafts?: boolean;
  /** Runs it with the values of its arguments. */
  readonly run: (
    args: readonly string[],
    input: SubcommandInput,
  ) => AsyncIterable<SubcommandResult>;
}

/** Defines a command with subcommands that call the HTTP API. */
export function clientCommand({
  description,
  subcommands,
}: {
  readonly description: string;
  readonly subcommands: Readonly<Record<string, Subcommand>>;
}): DefineCommand {
  return (command, terminal) => {
    command.description(description);
    for (const [name, subcommand] of Object.entries(subcommands)) {
      defineSubcommand(command.command(name), subcommand, terminal);
    }
  };
}

/** Defines a command that itself calls the HTTP API. */
export function singleCommand(subcommand: Subcommand): DefineCommand {
  return (command, terminal) => {
    defineSubcommand(command, subcommand, terminal);
  };
}

function defineSubcommand(command: Command, subcommand: Subcommand, terminal: Terminal): void {
  const { summary, args = {}, options: inputOptions = {}, run } = subcommand;
  const { writes = false, inDrafts = false } = subcommand;
  const inputs = Object.entries(inputOptions).map(([field, input]) => {
    const option = optionOf(field, input);
    return { field, option, name: option.attributeName() };
  });
  command.summary(summary).description(`${summary[0]?.toUpperCase()}${summary.slice(1)}.`);
  for (const [name, description] of Object.entries(args)) command.argument(name, description);
  for (const { option } of inputs) command.addOption(option);
  if (writes) command.option('--vk <key>', 'your own id of this change: repeating it does nothing');
  if (inDrafts) command.addOption(draftOption());
  for (const option of [...apiOptions(), jsonOption()]) command.addOption(option);
  command.action(async () => {
    const options: ClientOptions = command.opts();
    const values = inputs.map(({ field, name }) => [
      field,
      command.getOptionValue(name) as unknown,
    ]);
    const input = Object.fromEntries(
      values.filter(([, value]) => value !== undefined),
    ) as JsonObject;
    const api = await apiTargetOf(options, terminal);
    const stdin = terminal.input;
    for await (const result of run(command.args, { api, vk: options.vk, input, stdin })) {
      print(result, options.json, terminal);
      terminal.exitCode = result.code ?? terminal.exitCode ?? 0;
    }
  });
}

interface ClientOptions extends ApiTargetOptions {
  readonly vk?: string;
  readonly json: boolean;
}

function optionOf(field: string, { description, value, isNumber, values }: InputOption): Option {
  const name = `--${field.replaceAll('_', '-')}`;
  const flags = value === undefined ? name : `${name} <${value}>`;
  if (values !== undefined) return choiceOption(flags, description, values);
  const option = new Option(flags, description);
  return isNumber === true ? option.argParser(wholeNumber) : option;
}

/** Parses a JSON object of the command line; throws UsageError, which names `what` is wrong. */
export function parseObject(json: string, what: string): JsonObject {
  let value: unknown;
  try {
    value = parseDistinct(json);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new UsageError(`${what} is not JSON: ${reason}`);
  }
  if (!isJsonObject(value)) throw new UsageError(`${what} must be a JSON object.`);
  return value;
}

function print(
  { answer, lines, notes = [] }: SubcommandResult,
  json: boolean,
  terminal: Terminal,
): void {
  if (json) writeLine(terminal.out, JSON.stringify(answer));
  else for (const line of lines) writeLine(terminal.out, line);
  for (const note of notes) writeLine(terminal.err, note);
}

/** Shows the data of an answer, with a warning for each problem of a write. */
export function answerResult(answer: JsonObject): SubcommandResult {
  const lines = [JSON.stringify(answer.data, undefined, 2)];
  return { answer, lines, notes: warningsOf(answer) };
}

/** The problems that an answer names, as lines for a person. */
export function warningsOf({ data }: JsonObject): readonly string[] {
  const problems = isJsonObject(data) ? data.problems : undefined;
  if (!Array.isArray(problems)) return [];
  return (problems as readonly Problem[]).map(({ message }) => `warning: ${message}`);
}

/** The names in `unknowns` of an answer. */
export function unknownsOf({ data }: JsonObject): readonly string[] {
  const unknowns = isJsonObject(data) ? data.unknowns : undefined;
  return Array.isArray(unknowns) ? (unknowns as readonly string[]) : [];
}

/** Resolves an argument to a text: itself, the content of `@FILE`, or for `-`, standard input. */
export async function readText(source: string, stdin: SubcommandInput['stdin']): Promise<string> {
  if (source === '-') return text(stdin());
  if (!source.startsWith('@')) return source;
  const file = source.slice(1);
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
    throw new UsageError(`cannot read ${file}: ${reason}.`);
  }
}

/** A table of text: rows below a heading, with aligned columns. */
export function table(
  heading: readonly string[],
  rows: readonly (readonly string[])[],
): readonly string[] {
  // A line break in a cell would begin a row.
  const all = [heading, ...rows.map((cells) => cells.map(withoutControls))];
  // The last column is not padded: it may be as long as a page.
  const widths = heading.map((_, at) =>
    at === heading.length - 1 ? 0 : Math.max(...all.map((row) => (row[at] ?? '').length)),
  );
  return all.map((row) =>
    row
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}
