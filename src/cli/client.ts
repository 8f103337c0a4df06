import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { isJsonObject, type JsonObject } from '../model/json.ts';
import { say, UsageError, type Command, type Terminal } from './command.ts';
import { parseWords } from './options.ts';
import { serviceOf, serviceOptions, serviceUsage, type Service } from './service.ts';

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
  /** What is written to the command. */
  readonly stdin: () => AsyncIterable<Uint8Array>;
}

/** How the text of an option becomes an input field; a flag has no text. */
export type InputKind = 'text' | 'number' | 'flag';

/** One thing that a command does: its second word. */
export interface Act {
  /** The input fields that its options may give, by the names of the fields. */
  readonly takes: Readonly<Record<string, InputKind>>;
  /** Whether it takes `--vk`. */
  readonly writes?: boolean;
  readonly run: (words: readonly string[], given: Given) => AsyncIterable<Done>;
}

/** Makes a command whose acts are clients of the HTTP API; `usage` starts with its name. */
export function clientCommand({
  usage,
  summary,
  acts,
}: {
  readonly usage: string;
  readonly summary: string;
  readonly acts: Readonly<Record<string, Act>>;
}): Command {
  const [noun = ''] = usage.split(' ');
  return {
    usage: `${usage}   ${serviceUsage}`,
    summary: `${summary} through the HTTP API (WAYMARK_URL, WAYMARK_APIKEY)`,
    async run(words, terminal) {
      const { values, positionals } = parseWords(words, {
        ...serviceOptions,
        ...inputOptions(Object.values(acts)),
        vk: { type: 'string' },
        json: { type: 'boolean', default: false },
      });
      const [name = '', ...rest] = positionals;
      const act = Object.hasOwn(acts, name) ? acts[name] : undefined;
      if (act === undefined) throw new UsageError(`${oneOf(Object.keys(acts))}?`);
      const { url, apikey, config, vk, json, ...given } = values;
      if (vk !== undefined && act.writes !== true) throw stray(`${noun} ${name}`, 'vk');
      const input = inputOf(given, act, `${noun} ${name}`);
      const service = await serviceOf({ url, apikey, config }, terminal);
      let code = 0;
      for await (const done of act.run(rest, { service, vk, input, stdin: terminal.input })) {
        tell(done, json, terminal);
        code = done.code ?? code;
      }
      return code;
    },
  };
}

function inputOptions(acts: readonly Act[]) {
  const kinds = acts.flatMap(({ takes }) => Object.entries(takes));
  return Object.fromEntries(
    kinds.map(([name, kind]) => [
      optionName(name),
      { type: kind === 'flag' ? 'boolean' : 'string' } as const,
    ]),
  );
}

function optionName(field: string): string {
  return field.replaceAll('_', '-');
}

function inputOf(
  given: Readonly<Record<string, string | boolean | undefined>>,
  { takes }: Act,
  words: string,
): JsonObject {
  const input: Record<string, JsonObject[string]> = {};
  for (const [option, value] of Object.entries(given)) {
    if (value === undefined) continue;
    const name = option.replaceAll('-', '_');
    const kind = Object.hasOwn(takes, name) ? takes[name] : undefined;
    if (kind === undefined) throw stray(words, option);
    input[name] = typeof value === 'boolean' ? value : inputValue(value, kind, option);
  }
  return input;
}

function inputValue(word: string, kind: InputKind, option: string): JsonObject[string] {
  if (kind !== 'number') return word;
  if (!/^\d{1,15}$/.test(word)) throw new UsageError(`--${option} has to be a whole number.`);
  return Number(word);
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

function stray(words: string, option: string): UsageError {
  return new UsageError(`${words} takes no --${option}.`);
}

function oneOf(names: readonly string[]): string {
  return `${names.slice(0, -1).join(', ')} or ${names.at(-1) ?? ''}`;
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
  const widths = heading.map((_, at) => Math.max(...all.map((row) => (row[at] ?? '').length)));
  return all.map((row) =>
    row
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}
