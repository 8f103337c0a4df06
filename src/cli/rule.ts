import { readFile } from 'node:fs/promises';
import type { HistoryRow } from '../model/change.ts';
import { isJsonObject, type JsonObject } from '../model/json.ts';
import type { Rule } from '../model/rule.ts';
import { say, UsageError, type Command, type Terminal } from './command.ts';
import { invalidateLines } from './invalidate-report.ts';
import { parseWords, requireNoMore } from './options.ts';
import { callService, serviceOptions, type Service } from './service.ts';

const family = 'svc1.userinterface';

/** `waymark rule list | read | insert | edit | history | invalidate`: a client of the HTTP API. */
export const rule: Command = {
  usage:
    'rule list [--origin O] [--path P] [--kind K] [--table T] [--engine E] [--text WORDS] ' +
    '[--as-of T] | rule read ID [--as-of T] | rule history ID | ' +
    'rule insert JSON|@FILE|- [--vk KEY] | rule edit ID JSON|@FILE|- [--vk KEY] | ' +
    'rule invalidate [ID] [--txn TXN] [--by KEY] [--from T] [--until T] [--confirm DIGEST]' +
    '   [--url URL] [--apikey KEY] [--json]',
  summary: 'write and read page rules through the HTTP API (WAYMARK_URL, WAYMARK_APIKEY)',
  async run(words, terminal) {
    const { values, positionals } = parseWords(words, {
      ...serviceOptions,
      ...inputOptions,
      vk: { type: 'string' },
      json: { type: 'boolean', default: false },
    });
    const [action = '', ...rest] = positionals;
    const act = Object.hasOwn(actions, action) ? actions[action] : undefined;
    if (act === undefined) {
      throw new UsageError('list, read, insert, edit, history or invalidate?');
    }
    const service: Service = { ...values, env: terminal.env };
    const input = inputOf(values);
    const stray = Object.keys(input).find((name) => !act.takes.includes(name));
    if (stray !== undefined) {
      throw new UsageError(`rule ${action} takes no --${stray.replace('_', '-')}.`);
    }
    for await (const { answer, lines } of act.run(rest, { service, vk: values.vk, input })) {
      if (values.json) say(terminal.out, JSON.stringify(answer));
      else printLines(lines, answer, terminal);
    }
    return 0;
  },
};

interface Done {
  /** The envelope as the API returned it. */
  readonly answer: JsonObject;
  /** What a person or script reads instead of the envelope. */
  readonly lines: readonly string[];
}

interface Act {
  /** The input fields that its options may give. */
  readonly takes: readonly string[];
  readonly run: (words: readonly string[], given: Given) => AsyncIterable<Done>;
}

interface Given {
  readonly service: Service;
  readonly vk: string | undefined;
  /** Input fields from options. */
  readonly input: JsonObject;
}

const inputOptions = {
  origin: { type: 'string' },
  path: { type: 'string' },
  kind: { type: 'string' },
  table: { type: 'string' },
  engine: { type: 'string' },
  text: { type: 'string' },
  'as-of': { type: 'string' },
  txn: { type: 'string' },
  by: { type: 'string' },
  from: { type: 'string' },
  until: { type: 'string' },
  confirm: { type: 'string' },
} as const;

/** What options say, under the names that the API has for it. */
function inputOf(values: Readonly<Record<string, unknown>>): JsonObject {
  return Object.fromEntries(
    Object.keys(inputOptions)
      .map((name) => [name.replace('-', '_'), values[name]] as const)
      .filter((entry): entry is readonly [string, string] => typeof entry[1] === 'string'),
  );
}

const actions: Readonly<Partial<Record<string, Act>>> = {
  list: {
    takes: ['origin', 'path', 'kind', 'table', 'engine', 'text', 'as_of'],
    async *run(words, { service, input }) {
      requireNoMore(words);
      let after: string | null = '';
      while (after !== null) {
        const v: JsonObject = { ...input, ...(after !== '' && { after }) };
        const answer: JsonObject = await callService(service, `${family}.list`, { v });
        const { rows, next } = answer.data as unknown as ListPage;
        yield { answer, lines: rows.map(listLine) };
        after = next;
      }
    },
  },
  insert: {
    takes: [],
    async *run([source, ...more], { service, vk }) {
      requireNoMore(more);
      const v = await readFields(source);
      yield record(await callService(service, `${family}.insert`, { v, vk }));
    },
  },
  edit: {
    takes: [],
    async *run([id, source, ...more], { service, vk }) {
      requireNoMore(more);
      const v = { ...(await readFields(source)), id: requireId(id) };
      yield record(await callService(service, `${family}.edit`, { v, vk }));
    },
  },
  read: {
    takes: ['as_of'],
    async *run([id, ...more], { service, input }) {
      requireNoMore(more);
      const v = { ...input, id: requireId(id) };
      yield record(await callService(service, `${family}.read`, { v }));
    },
  },
  history: {
    takes: [],
    async *run([id, ...more], { service }) {
      requireNoMore(more);
      const v = { id: requireId(id) };
      const answer = await callService(service, `${family}.read`, { v, qk: 'history' });
      const rows = isJsonObject(answer.data) ? answer.data.rows : [];
      yield { answer, lines: (rows as unknown as readonly ShownRow[]).map(historyLine) };
    },
  },
  invalidate: {
    takes: ['txn', 'by', 'from', 'until', 'confirm'],
    async *run([id, ...more], { service, vk, input }) {
      requireNoMore(more);
      const v = { ...input, ...(id !== undefined && { id }) };
      const answer = await callService(service, `${family}.invalidate`, { v, vk });
      yield { answer, lines: invalidateLines(answer.data as JsonObject) };
    },
  },
};

interface ListPage {
  readonly rows: readonly Pick<Rule, 'id' | 'origin' | 'path' | 'kind'>[];
  readonly next: string | null;
}

function listLine({ id, origin, path, kind }: ListPage['rows'][number]): string {
  return [id, kind, origin, path].join('\t');
}

function record(answer: JsonObject): Done {
  return { answer, lines: [JSON.stringify(answer.data, undefined, 2)] };
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

/** What landed in `_unknowns_` is worth a word: it is usually a slip. */
function printLines(lines: readonly string[], answer: JsonObject, terminal: Terminal): void {
  for (const line of lines) say(terminal.out, line);
  const unknowns = isJsonObject(answer.data) ? answer.data.unknowns : undefined;
  if (Array.isArray(unknowns) && unknowns.length > 0) {
    say(terminal.err, `Not valid, kept in _unknowns_: ${unknowns.join(', ')}.`);
  }
}

async function readFields(source: string | undefined): Promise<JsonObject> {
  if (source === undefined) throw new UsageError('Give the fields as JSON, @FILE, or - for stdin.');
  let fields: unknown;
  try {
    fields = JSON.parse(await readSource(source));
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
  if (!isJsonObject(fields)) throw new UsageError('The fields must be a JSON object.');
  return fields;
}

async function readSource(source: string): Promise<string> {
  if (source === '-') return readFile('/dev/stdin', 'utf8');
  return source.startsWith('@') ? readFile(source.slice(1), 'utf8') : source;
}

function requireId(id: string | undefined): string {
  if (id === undefined) throw new UsageError('Which rule? Give its id.');
  return id;
}
