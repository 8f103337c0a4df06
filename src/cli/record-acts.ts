import type { HistoryRow } from '../model/change.ts';
import { isJsonObject, type Json, type JsonObject } from '../model/json.ts';
import type { Problem } from '../model/failure.ts';
import {
  parseObject,
  readText,
  table,
  type Act,
  type Done,
  type Given,
  type InputOption,
} from './client.ts';
import { callService, type Service } from './service.ts';

/** The records of one family, as commands speak of them. */
interface RecordFamily {
  /** `svc1.<family>`. */
  readonly family: string;
  /** What one of them is called, and the command for them. */
  readonly noun: string;
  readonly command: string;
  /** The filters of its list operation. */
  readonly filters: Readonly<Record<string, InputOption>>;
  /** A page of the list. */
  readonly listLines: (rows: readonly JsonObject[]) => readonly string[];
}

/** An option that takes a moment of the past. */
export const asOf: InputOption = {
  value: 'time',
  description: 'as it was then: a date-time, or a seq of the log',
};

const fieldsWord = 'the fields: JSON, @FILE, or - for standard input';

/** What every family of records that has a history can be asked for and told. */
export function recordActs(records: RecordFamily) {
  return { ...readingActs(records), ...writingActs(records) };
}

function readingActs({ family, noun, filters, listLines }: RecordFamily) {
  const idWord = { '<id>': `the id of the ${noun}` };
  return {
    list: {
      summary: `list ${noun}s`,
      takes: filters,
      async *run(_words, { service, input }) {
        let after: string | null = '';
        while (after !== null) {
          const isFirst: boolean = after === '';
          const v: JsonObject = { ...input, ...(!isFirst && { after }) };
          const answer: JsonObject = await callService(service, `${family}.list`, { v });
          const { rows, next } = answer.data as unknown as ListPage;
          const lines = listLines(rows);
          yield { answer, lines: isFirst ? lines : lines.slice(1) };
          after = next;
        }
      },
    },
    read: {
      summary: `print a ${noun} as JSON`,
      words: idWord,
      takes: { as_of: asOf },
      async *run([id = ''], { service, input }) {
        yield record(await callService(service, `${family}.read`, { v: { ...input, id } }));
      },
    },
    history: {
      summary: `list the changes of a ${noun}, the newest first`,
      words: idWord,
      async *run([id = ''], { service }) {
        yield* historyPages(service, family, id);
      },
    },
  } as const satisfies Readonly<Record<string, Act>>;
}

function writingActs(records: RecordFamily) {
  const { family, noun } = records;
  const idWord = { '<id>': `the id of the ${noun}` };
  return {
    insert: {
      summary: `insert a ${noun}`,
      words: { '<fields>': fieldsWord },
      takes: { strict },
      writes: true,
      async *run([source = ''], { service, vk, input, stdin }) {
        const v = await readFields(source, stdin);
        const envelope = { v, vk, ...preference(input) };
        yield record(await callService(service, `${family}.insert`, envelope));
      },
    },
    edit: {
      summary: `change fields of a ${noun}; null removes one, the others stay`,
      words: { ...idWord, '<fields>': fieldsWord },
      takes: { strict },
      writes: true,
      async *run([id = '', source = ''], { service, vk, input, stdin }) {
        const v = { ...(await readFields(source, stdin)), id };
        const envelope = { v, vk, ...preference(input) };
        yield record(await callService(service, `${family}.edit`, envelope));
      },
    },
    invalidate: {
      summary: 'take changes back; without --confirm only say what would change',
      words: { '[id]': `the id of a ${noun}; or select changes by the options` },
      takes: {
        txn: { value: 'txn', description: 'the changes of one transaction, such as an import' },
        by: { value: 'key', description: 'the changes that the key with this id has written' },
        from: { value: 'time', description: 'the changes since a date-time or seq' },
        until: { value: 'time', description: 'the changes up to a date-time or seq' },
        confirm: { value: 'digest', description: 'the digest that the dry run has printed' },
      },
      writes: true,
      async *run([id], { service, vk, input }) {
        const v = { ...input, ...(id !== undefined && { id }) };
        const answer = await callService(service, `${family}.invalidate`, { v, vk });
        yield { answer, lines: invalidateLines(answer.data as JsonObject, records) };
      },
    },
  } as const satisfies Readonly<Record<string, Act>>;
}

/** A record as it came back, for a person to read, with a warning for each problem of a write. */
export function record(answer: JsonObject): Done {
  const lines = [JSON.stringify(answer.data, undefined, 2)];
  return { answer, lines, notes: problemsOf(answer).map((message) => `warning: ${message}`) };
}

function problemsOf({ data }: JsonObject): readonly string[] {
  const problems = isJsonObject(data) ? data.problems : undefined;
  if (!Array.isArray(problems)) return [];
  return (problems as readonly Problem[]).map(({ message }) => message);
}

/** What a write is sent with besides its input. */
function preference({ strict = false }: JsonObject): { readonly prefer?: string } {
  return strict === true ? { prefer: 'handling=strict' } : {};
}

const strict: InputOption = { description: 'refuse the write if a field is not valid' };

interface ListPage {
  readonly rows: readonly JsonObject[];
  readonly next: string | null;
}

interface HistoryPage {
  readonly rows: readonly ShownRow[];
  readonly next?: number | null;
}

/** A history from its newest row to its first. */
async function* historyPages(service: Service, family: string, id: string): AsyncIterable<Done> {
  const heading = ['SEQ', 'AT', 'ACTION', 'BY', 'TXN', 'STATE', 'DATA'];
  let before: number | null = null;
  let isFirst = true;
  do {
    const envelope = { v: { id, before }, qk: 'history' };
    const answer: JsonObject = await callService(service, `${family}.read`, envelope);
    const { rows, next = null } = answer.data as unknown as HistoryPage;
    const lines = table(heading, rows.map(historyCells));
    yield { answer, lines: isFirst ? lines : lines.slice(1) };
    isFirst = false;
    before = next;
  } while (before !== null);
}

/** A row of the history as the API shows it. */
type ShownRow = Omit<HistoryRow, 'data'> & {
  readonly data?: JsonObject;
  readonly data_invalidated?: JsonObject;
};

function historyCells(row: ShownRow): readonly string[] {
  const { seq, dtu_txn: at, action, by, txn, invalidated } = row;
  const data = JSON.stringify(row.data ?? row.data_invalidated);
  const state = invalidated === undefined ? 'in force' : `invalidated ${invalidated}`;
  return [String(seq), at, action, by, txn, state, data];
}

async function readFields(source: string, stdin: Given['stdin']): Promise<JsonObject> {
  return parseObject(await readText(source, stdin), '<fields>');
}

/** What an invalidate reports (docs/design/history.md#undo), before and after. */
interface Report {
  readonly done: boolean;
  readonly records: number;
  readonly rows: number;
  readonly unlisted: number;
}

interface DryRun extends Report {
  readonly gone: number;
  readonly restored: number;
  readonly changed: number;
  readonly changes: readonly {
    readonly id: string;
    readonly becomes: string;
    readonly fields: Readonly<Record<string, { readonly now: Json; readonly then: Json }>>;
  }[];
  readonly conflicts: readonly { readonly id: string; readonly rows: readonly number[] }[];
  readonly conflicting: number;
  readonly digest: string;
}

interface InvalidateDone extends Report {
  readonly txn: string | null;
}

/** What the records of a report are called, and the command for them. */
interface Names {
  readonly noun: string;
  readonly command: string;
}

/** The report of an invalidate in words, with what to do next. */
function invalidateLines(data: JsonObject, names: Names): readonly string[] {
  return data.done === true
    ? doneLines(data as unknown as InvalidateDone, names)
    : dryRunLines(data as unknown as DryRun, names);
}

function doneLines(
  { records, rows, txn }: InvalidateDone,
  { noun, command }: Names,
): readonly string[] {
  if (txn === null) return ['Nothing was in force that could be invalidated.'];
  return [
    `Done: ${rows} changes of ${records} ${noun}s are taken back.`,
    `To take it back: waymark ${command} invalidate --txn ${txn}`,
  ];
}

function dryRunLines(report: DryRun, { noun }: Names): readonly string[] {
  const { records, rows, gone, restored, changed, changes, conflicts } = report;
  if (records === 0) return ['Nothing is in force that could be invalidated.'];
  return [
    `Nothing is done yet. ${rows} changes of ${records} ${noun}s would be taken back.`,
    `It would delete ${gone} ${noun}s, restore ${restored} and change ${changed}.`,
    ...changes.flatMap(({ id, becomes, fields }) => [
      `  ${id}  ${becomes}`,
      ...Object.entries(fields).map(
        ([name, { now, then }]) =>
          `    ${name}: ${JSON.stringify(now)} would be ${JSON.stringify(then)}`,
      ),
    ]),
    ...(report.unlisted > 0 ? [`  … and ${report.unlisted} more`] : []),
    ...(report.conflicting > 0
      ? [`${report.conflicting} were edited again since; those later changes stay:`]
      : []),
    ...conflicts.map(({ id, rows: later }) => `  ${id}  seq ${later.join(', ')}`),
    `To do it, repeat the command with --confirm ${report.digest}`,
  ];
}
