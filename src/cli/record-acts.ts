import type { HistoryRow } from '../model/change.ts';
import type { JsonObject } from '../model/json.ts';
import {
  parseObject,
  readText,
  unknownsOf,
  type Act,
  type Done,
  type Given,
  type InputKind,
} from './client.ts';
import { UsageError } from './command.ts';
import { invalidateLines } from './invalidate-report.ts';
import { requireNoMore } from './options.ts';
import { callService, type Service } from './service.ts';

/** The records of one family, as commands speak of them. */
export interface RecordFamily {
  /** `svc1.<family>`. */
  readonly family: string;
  /** What one of them is called, and the command for them. */
  readonly noun: string;
  readonly command: string;
  /** The filters of its list operation. */
  readonly filters: Readonly<Record<string, InputKind>>;
  /** A page of the list. */
  readonly listLines: (rows: readonly JsonObject[]) => readonly string[];
}

/** What every family of records that has a history can be asked for and told. */
export function recordActs(records: RecordFamily) {
  const { family, noun, filters, listLines } = records;
  return {
    list: {
      takes: filters,
      async *run(words, { service, input }) {
        requireNoMore(words);
        let after: string | null = '';
        while (after !== null) {
          const v: JsonObject = { ...input, ...(after !== '' && { after }) };
          const answer: JsonObject = await callService(service, `${family}.list`, { v });
          const { rows, next } = answer.data as unknown as ListPage;
          yield { answer, lines: listLines(rows) };
          after = next;
        }
      },
    },
    read: {
      takes: { as_of: 'text' },
      async *run([id, ...more], { service, input }) {
        requireNoMore(more);
        const v = { ...input, id: requireId(id, noun) };
        yield record(await callService(service, `${family}.read`, { v }));
      },
    },
    insert: {
      takes: {},
      writes: true,
      async *run([source, ...more], { service, vk, stdin }) {
        requireNoMore(more);
        const v = await readFields(source, stdin);
        yield record(await callService(service, `${family}.insert`, { v, vk }));
      },
    },
    edit: {
      takes: {},
      writes: true,
      async *run([id, source, ...more], { service, vk, stdin }) {
        requireNoMore(more);
        const v = { ...(await readFields(source, stdin)), id: requireId(id, noun) };
        yield record(await callService(service, `${family}.edit`, { v, vk }));
      },
    },
    history: {
      takes: {},
      async *run([id, ...more], { service }) {
        requireNoMore(more);
        yield* historyPages(service, family, requireId(id, noun));
      },
    },
    invalidate: {
      takes: { txn: 'text', by: 'text', from: 'text', until: 'text', confirm: 'text' },
      writes: true,
      async *run([id, ...more], { service, vk, input }) {
        requireNoMore(more);
        const v = { ...input, ...(id !== undefined && { id }) };
        const answer = await callService(service, `${family}.invalidate`, { v, vk });
        yield { answer, lines: invalidateLines(answer.data as JsonObject, records) };
      },
    },
  } as const satisfies Readonly<Record<string, Act>>;
}

/** The id that a command's words give; throws UsageError where there is none. */
export function requireId(id: string | undefined, noun: string): string {
  if (id === undefined) throw new UsageError(`Which ${noun}? Give its id.`);
  return id;
}

/**
 * A record as it came back, for a person to read. What landed in `_unknowns_` is worth a word: it
 * is usually a slip.
 */
export function record(answer: JsonObject): Done {
  const unknowns = unknownsOf(answer);
  const note = `Not valid, kept in _unknowns_: ${unknowns.join(', ')}.`;
  const lines = [JSON.stringify(answer.data, undefined, 2)];
  return { answer, lines, notes: unknowns.length === 0 ? [] : [note] };
}

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
  let before: number | null = null;
  do {
    const envelope = { v: { id, before }, qk: 'history' };
    const answer: JsonObject = await callService(service, `${family}.read`, envelope);
    const { rows, next = null } = answer.data as unknown as HistoryPage;
    yield { answer, lines: rows.map(historyLine) };
    before = next;
  } while (before !== null);
}

/** A row of the history as the API shows it. */
type ShownRow = Omit<HistoryRow, 'data'> & {
  readonly data?: JsonObject;
  readonly data_invalidated?: JsonObject;
};

function historyLine(row: ShownRow): string {
  const { seq, dtu_txn: at, action, by, txn, invalidated } = row;
  const data = JSON.stringify(row.data ?? row.data_invalidated);
  const standing = invalidated === undefined ? [] : [`invalidated ${invalidated}`];
  return [seq, at, action, by, txn, data, ...standing].join('\t');
}

async function readFields(source: string | undefined, stdin: Given['stdin']): Promise<JsonObject> {
  if (source === undefined) throw new UsageError('Give the fields as JSON, @FILE, or - for stdin.');
  return parseObject(await readText(source, stdin), 'What is given as the fields');
}
