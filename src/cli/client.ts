import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { Option, type Command } from 'commander';
import { isJsonObject, type JsonObject } from '../model/json.ts';
import { say, UsageError, type DefineCommand, type Terminal } from './command.ts';
import { choiceOption, jsonOption, wholeNumber } from './options.ts';
import { serviceOf, serviceOptions, type Service, type ServiceOptions } from './service.ts';

/** What an act has done, or one page of it. */
export interface Done {
  /** The envelope as the API returned it. */
  readonly answer: JsonObject;
  /** What a person or script reads instead of the envelope. */
  readonly lines: readonly string[];
  /** What a person wants to know besides. */
  readonly notes?: readonly string[];
  /** The exit code, unless it is 0. */
  readonly code?: number;
}

/** What an act is given. */
export interface Given {
  readonly service: Service;
  readonly vk: string | undefined;
  /** Input fields from options, under the names that the API has for them. */
  readonly input: JsonObject;
  /** Standard input. */
  readonly stdin: () => AsyncIterable<Uint8Array>;
}

/** An option that gives an input field. */
export interface InputOption {
  readonly description: string;
  /** The placeholder of its value; a flag has none. */
  readonly value?: string;
  /** Whether the value is a whole number. */
  readonly isNumber?: boolean;
  /** The values that it takes, where they are known. */
  readonly values?: readonly string[];
}

/** One thing that a command does: its second word. */
export interface Act {
  readonly summary: string;
  /** Its arguments as commander writes them (`<id>`, `[url]`), and what each one is. */
  readonly words?: Readonly<Record<string, string>>;
  /** Its options, by the names of the input fields that they give: `as_of` is `--as-of`. */
  readonly takes?: Readonly<Record<string, InputOption>>;
  /** Whether it takes `--vk`. */
  readonly writes?: boolean;
  /** Runs it with the arguments that were given. */
  readonly run: (words: readonly string[], given: Given) => AsyncIterable<Done>;
}

/** Makes a command whose acts are clients of the HTTP API. */
export function clientCommand({
  description,
  acts,
}: {
  readonly description: string;
  readonly acts: Readonly<Record<string, Act>>;
}): DefineCommand {
  return (command, terminal) => {
    command.description(description);
    for (const [name, act] of Object.entries(acts)) defineAct(command.command(name), act, terminal);
  };
}

function defineAct(command: Command, act: Act, terminal: Terminal): void {
  const { summary, words = {}, takes = {}, writes = false, run } = act;
  const inputs = Object.entries(takes).map(([field, input]) => {
    const option = optionOf(field, input);
    return { field, option, name: option.attributeName() };
  });
  command.summary(summary).description(`${summary[0]?.toUpperCase()}${summary.slice(1)}.`);
  for (const [name, description] of Object.entries(words)) command.argument(name, description);
  for (const { option } of inputs) command.addOption(option);
  if (writes) command.option('--vk <key>', 'a key of your own that makes a repeat harmless');
  for (const option of [...serviceOptions(), jsonOption()]) command.addOption(option);
  command.action(async () => {
    const options: ClientOptions = command.opts();
    const given = inputs.map(({ field, name }) => [field, command.getOptionValue(name) as unknown]);
    const input = Object.fromEntries(
      given.filter(([, value]) => value !== undefined),
    ) as JsonObject;
    const service = await serviceOf(options, terminal);
    const stdin = terminal.input;
    for await (const done of run(command.args, { service, vk: options.vk, input, stdin })) {
      tell(done, options.json, terminal);
      terminal.exitCode = done.code ?? terminal.exitCode ?? 0;
    }
  });
}

interface ClientOptions extends ServiceOptions {
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

/** A JSON object that somebody wrote; throws UsageError, with `what` it is for. */
export function parseObject(json: string, what: string): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new UsageError(`${what} is not JSON: ${reason}`);
  }
  if (!isJsonObject(value)) throw new UsageError(`${what} has to be a JSON object.`);
  return value;
}

function tell({ answer, lines, notes = [] }: Done, json: boolean, terminal: Terminal): void {
  if (json) say(terminal.out, JSON.stringify(answer));
  else for (const line of lines) say(terminal.out, line);
  for (const note of notes) say(terminal.err, note);
}

/** The names that an answer's `unknowns` tells, for a note of them. */
export function unknownsOf({ data }: JsonObject): readonly string[] {
  const unknowns = isJsonObject(data) ? data.unknowns : undefined;
  return Array.isArray(unknowns) ? (unknowns as readonly string[]) : [];
}

/** The text that a word stands for: itself, or what `@FILE`, or `-`, standard input, holds. */
export async function readText(source: string, stdin: Given['stdin']): Promise<string> {
  if (source === '-') return text(stdin());
  if (!source.startsWith('@')) return source;
  const file = source.slice(1);
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
    throw new UsageError(`Cannot read ${file}: ${reason}.`);
  }
}

/** Rows under a heading, their columns aligned. */
export function table(
  heading: readonly string[],
  rows: readonly (readonly string[])[],
): readonly string[] {
  const all = [heading, ...rows];
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
