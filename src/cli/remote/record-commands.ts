import type {
  RecordFamily,
  RecordFields,
  RecordParts,
} from '../../core/operations/records/family.ts';
import type { Operations } from '../client/operations.ts';
import type { Json, JsonObject } from '../../core/values/json/json.ts';
import {
  answerResult,
  clientCommand,
  parseObject,
  readText,
  table,
  type Subcommand,
  type SubcommandResult,
  type SubcommandInput,
  type InputOption,
} from './client-command.ts';
import { callApi, type ApiTarget } from './api-client.ts';
import { UsageError, type DefineCommand } from '../command.ts';
import { listPages, type ListColumns } from './list-command.ts';
import { inputOptions, operationSubcommands } from './operation-command.ts';
import { counted } from '../../core/values/units.ts';

type Read = Operations['userinterface.read']['output'];
type History = Extract<Read, { readonly rows: unknown }>;
type HistoryRow = History['rows'][number];

type Invalidated = Operations['userinterface.invalidate']['output'];
type InvalidateDone = Extract<Invalidated, { readonly done: true }>;
type InvalidateDryRun = Exclude<Invalidated, InvalidateDone>;

/** The description of a record family, as far as its command needs it. */
type CommandFamily = Pick<
  RecordFamily<RecordParts, RecordFields>,
  'name' | 'noun' | 'command' | 'list' | 'afterAt' | 'part'
>;

/** The command for the records of a family; `own` are further subcommands, or replace others. */
export function recordCommand(
  family: CommandFamily,
  own: Readonly<Record<string, Subcommand>> = {},
  elsewhere: readonly string[] = [],
): DefineCommand {
  const { name, noun } = family;
  return clientCommand({
    description: `Read and write ${noun}s through the HTTP API.`,
    subcommands: operationSubcommands(name, { ...recordSubcommands(family), ...own }, elsewhere),
  });
}

/** The option that carries out what a report shows. */
export const confirmOption: InputOption = {
  value: 'digest',
  description: 'the digest that the command printed without --confirm',
};

/** An option with a time in the past. */
const asOfOption: InputOption = {
  value: 'time',
  description: 'the state at this time: a date-time, or a seq of the log',
};

/** The arguments that name a part of a family, such as the table of rows, before all others. */
function partArgs({ part }: CommandFamily): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(part?.members ?? {}).map(([name, { description }]) => {
      return [`<${name}>`, phrase(description)] as const;
    }),
  );
}

function phrase(description: Json | undefined): string {
  const sentence = typeof description === 'string' ? description : '';
  return `${sentence.slice(0, 1).toLowerCase()}${sentence.slice(1)}`.replace(/\.$/, '');
}

/** The members of an input that the first arguments are, and the other arguments. */
function splitArgs(
  { part }: CommandFamily,
  args: readonly (string | undefined)[],
): { readonly named: JsonObject; readonly rest: readonly (string | undefined)[] } {
  const names = Object.keys(part?.members ?? {});
  const named = Object.fromEntries(names.map((name, at) => [name, args[at] ?? '']));
  return { named, rest: args.slice(names.length) };
}

/** The argument that names a record; rows have a key as well. */
function idArgOf({ noun, part }: CommandFamily): string {
  return part === undefined ? `the id of the ${noun}` : `the id of the ${noun}, or its key`;
}

/** The members of an input that name a record; `id` is an id, or else the key of a row. */
async function naming(
  { name, part }: CommandFamily,
  { api, part: named, id }: { readonly api: ApiTarget; readonly part: JsonObject; id: string },
): Promise<JsonObject> {
  if (part === undefined || isUuid(id)) return { ...named, id };
  const { data } = await callApi(api, `svc1.${name}.schema`, { v: named });
  const { key } = data as JsonObject;
  return typeof key === 'string' ? { ...named, [key]: id } : { ...named, id };
}

function isUuid(text: string): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);
}

/** Throws UsageError for fields that would change the key by which they name their row. */
function requireNoName(fields: JsonObject, named: JsonObject): void {
  const field = Object.keys(named).find((one) => one !== 'table' && Object.hasOwn(fields, one));
  if (field === undefined || fields[field] === named[field]) return;
  throw new UsageError(`<fields> sets ${field}: name the row by its id to change its ${field}.`);
}

const fieldsDescription = 'the fields: JSON, @FILE, or - for standard input';

/** The subcommands that all record families have. */
export function recordSubcommands(family: CommandFamily): RecordSubcommands {
  const all = { ...readingSubcommands(family), ...writingSubcommands(family) };
  const inDrafts = Object.entries<Subcommand>(all).map(([name, one]) => {
    return [name, { ...one, inDrafts: true }] as const;
  });
  return Object.fromEntries(inDrafts) as RecordSubcommands;
}

type RecordSubcommands = Readonly<
  Record<
    keyof ReturnType<typeof readingSubcommands> | keyof ReturnType<typeof writingSubcommands>,
    Subcommand
  >
>;

function readingSubcommands(records: CommandFamily) {
  const { name, noun, list, afterAt } = records;
  const family = `svc1.${name}`;
  const asOf = { as_of: asOfOption };
  const idArg = { ...partArgs(records), '<id>': idArgOf(records) };
  return {
    list: {
      summary: `list ${noun}s`,
      args: partArgs(records),
      options: {
        ...inputOptions(Object.entries(list.filters)),
        text: { value: 'text', description: 'a text in any field' },
        ...(afterAt !== undefined && asOf),
      },
      async *run(args, { api, input: options }) {
        const { named } = splitArgs(records, args);
        const input = withObjects({ ...named, ...options }, list.filters);
        const columns = columnsOf(list.columns);
        yield* listPages({ api, name: `${family}.list`, columns }, input);
      },
    },
    read: {
      summary: `print a ${noun} as JSON`,
      args: idArg,
      options: asOf,
      async *run(args, { api, input }) {
        const { named: part, rest } = splitArgs(records, args);
        const v = { ...input, ...(await naming(records, { api, part, id: rest[0] ?? '' })) };
        yield answerResult(await callApi(api, `${family}.read`, { v }));
      },
    },
    history: {
      summary: `list the changes of a ${noun}, the newest first`,
      args: idArg,
      async *run(args, { api }) {
        const { named: part, rest } = splitArgs(records, args);
        const named = await naming(records, { api, part, id: rest[0] ?? '' });
        yield* historyPages(api, family, named);
      },
    },
  } as const satisfies Readonly<Record<string, Subcommand>>;
}

function writingSubcommands(records: CommandFamily) {
  const { name, noun } = records;
  const family = `svc1.${name}`;
  const idArg = { ...partArgs(records), '<id>': idArgOf(records) };
  return {
    insert: {
      summary: `insert a ${noun}`,
      args: { ...partArgs(records), '<fields>': fieldsDescription },
      options: { strict },
      writes: true,
      async *run(args, { api, vk, input, stdin }) {
        const { named, rest } = splitArgs(records, args);
        const v = { ...(await readFields(rest[0] ?? '', stdin)), ...named };
        const envelope = { v, vk, ...preference(input) };
        yield answerResult(await callApi(api, `${family}.insert`, envelope));
      },
    },
    edit: {
      summary: `change fields of a ${noun}; null removes a field`,
      args: { ...idArg, '<fields>': fieldsDescription },
      options: { strict },
      writes: true,
      async *run(args, { api, vk, input, stdin }) {
        const { named: part, rest } = splitArgs(records, args);
        const [id = '', source = ''] = rest;
        const fields = await readFields(source, stdin);
        const named = await naming(records, { api, part, id });
        if (records.part !== undefined) requireNoName(fields, named);
        const v = { ...fields, ...named };
        const envelope = { v, vk, ...preference(input) };
        yield answerResult(await callApi(api, `${family}.edit`, envelope));
      },
    },
    invalidate: {
      summary: 'revert changes; without --confirm, only show what would change',
      args: {
        ...partArgs(records),
        '[id]': `${idArgOf(records)}; without it, options select the changes`,
      },
      options: {
        txn: { value: 'txn', description: 'changes of one transaction, such as an import' },
        by: { value: 'key', description: 'changes by the API key with this id' },
        from: { value: 'time', description: 'changes since a date-time or seq' },
        until: { value: 'time', description: 'changes up to a date-time or seq' },
        confirm: confirmOption,
      },
      writes: true,
      async *run(args, { api, vk, input }) {
        const { named, rest } = splitArgs(records, args);
        const [id] = rest;
        const row = id === undefined ? named : await naming(records, { api, part: named, id });
        const v = { ...input, ...row };
        const answer = await callApi(api, `${family}.invalidate`, { v, vk });
        const words = [records.command, 'invalidate', ...Object.values(named).map(shownArg)];
        const names = { noun, command: [...words, '--txn'].join(' '), isOfAll: false };
        const txn = typeof input.txn === 'string' ? input.txn : undefined;
        const asked = { txn, draft: api.draft };
        yield { answer, lines: invalidateLines(answer.data as JsonObject, names, asked) };
      },
    },
  } as const satisfies Readonly<Record<string, Subcommand>>;
}

/** A word of a command line. */
export function shownWord(text: string): string {
  return /^[\w.:@/-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

function shownArg(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Options with their texts parsed as JSON objects. */
function withObjects(input: JsonObject, filters: CommandFamily['list']['filters']): JsonObject {
  return Object.fromEntries(
    Object.entries(input).map(([name, value]) => {
      const isObject = filters[name]?.type === 'object' && typeof value === 'string';
      return [name, isObject ? parseObject(value, `--${name}`) : value] as const;
    }),
  );
}

/** The columns of a family: the text of a field, or what a function makes of the row. */
function columnsOf(columns: CommandFamily['list']['columns']): ListColumns<JsonObject> {
  return Object.fromEntries(
    Object.entries(columns).map(([heading, column]) => {
      if (typeof column !== 'string') return [heading, column] as const;
      const shown = ({ [column]: value }: JsonObject): string =>
        typeof value === 'string' ? value : JSON.stringify(value ?? '');
      return [heading, shown] as const;
    }),
  );
}

/** The preference of a write for strict handling (RFC 7240). */
function preference({ strict = false }: JsonObject): { readonly prefer?: string } {
  return strict === true ? { prefer: 'handling=strict' } : {};
}

const strict: InputOption = { description: 'refuse the write if a field is not valid' };

/** The pages of a history, from the newest row to the first. */
async function* historyPages(
  api: ApiTarget,
  family: string,
  named: JsonObject,
): AsyncIterable<SubcommandResult> {
  const heading = ['SEQ', 'AT', 'ACTION', 'BY', 'TXN', 'STATE', 'DATA'];
  let before: number | null = null;
  let isFirst = true;
  do {
    const envelope = { v: { ...named, before }, qk: 'history' };
    const answer: JsonObject = await callApi(api, `${family}.read`, envelope);
    const { rows, next } = answer.data as unknown as History;
    const lines = table(heading, rows.map(historyCells));
    yield { answer, lines: isFirst ? lines : lines.slice(1) };
    isFirst = false;
    before = next;
  } while (before !== null);
}

function historyCells(row: HistoryRow): readonly string[] {
  const { seq, dtu_txn: at, action, by, by_name: name, via, txn, invalidated } = row;
  const key = name === undefined ? by : `${name} (${by})`;
  const author = via === undefined ? key : `${key} via ${via.client}`;
  const data = JSON.stringify(row.data ?? row.data_invalidated);
  const state = invalidated === undefined ? 'active' : `invalidated ${invalidated}`;
  return [String(seq), at, action, author, txn, state, data];
}

async function readFields(source: string, stdin: SubcommandInput['stdin']): Promise<JsonObject> {
  return parseObject(await readText(source, stdin), '<fields>');
}

/** The names of a family, or of all together, in the texts of a report. */
interface Names {
  readonly noun: string;
  readonly command: string;
  readonly isOfAll: boolean;
}

/**
 * The report of an invalidate as text, with the next command: `command` is what undoes it, up to
 * its transaction. `txn` is the transaction that it reverts, if it is one.
 */
export function invalidateLines(
  data: JsonObject,
  names: Names,
  { txn, draft }: { readonly txn: string | undefined; readonly draft: string | undefined },
): readonly string[] {
  const option = draft === undefined ? '' : ` --draft ${shownWord(draft)}`;
  const lines =
    data.done === true
      ? doneLines(data as unknown as InvalidateDone, names, option)
      : dryRunLines(data as unknown as InvalidateDryRun, names);
  const { others } = data as unknown as Invalidated;
  if (others.length === 0) return lines;
  const kept = others.map(({ family, rows }) => `${counted(rows, 'change')} of ${family}`);
  const all = names.isOfAll
    ? ', which stay.'
    : `. To revert all of it: waymark change invalidate ${txn ?? ''}${option}`;
  return [...lines, `The transaction has also made ${kept.join(', ')}${all}`];
}

function doneLines(
  { records, rows, txn }: InvalidateDone,
  { noun, command }: Names,
  option: string,
): readonly string[] {
  if (txn === null) return ['There was no change to revert.'];
  return [
    `Reverted ${counted(rows, 'change')} of ${counted(records, noun)}.`,
    `To undo this: waymark ${command} ${txn}${option}`,
  ];
}

function dryRunLines(report: InvalidateDryRun, { noun, isOfAll }: Names): readonly string[] {
  const { records, rows, gone, restored, changed, changes, conflicts } = report;
  if (records === 0) return ['There is no change to revert.'];
  const reverted = `${counted(rows, 'change')} of ${counted(records, noun)}`;
  return [
    `Nothing has changed yet. This would revert ${reverted}.`,
    `It would delete ${counted(gone, noun)}, restore ${restored} and change ${changed}.`,
    ...changes.flatMap(({ family, id, becomes, fields }) => [
      `  ${isOfAll ? `${family} ` : ''}${id}  ${becomes}`,
      ...Object.entries(fields).map(
        ([name, { now, then }]) =>
          `    ${name}: ${JSON.stringify(now)} would be ${JSON.stringify(then)}`,
      ),
    ]),
    ...(report.unlisted > 0 ? [`  … and ${report.unlisted} more`] : []),
    ...(report.conflicting > 0 ? [`${report.conflicting} have later changes, which stay:`] : []),
    ...conflicts.map(({ id, rows: later }) => `  ${id}  seq ${later.join(', ')}`),
    `To do it, repeat the command with --confirm ${report.digest}`,
  ];
}
