import { readFile } from 'node:fs/promises';
import type { HistoryRow } from '../model/change.ts';
import { isJsonObject, type JsonObject } from '../model/json.ts';
import { say, UsageError, type Command, type Terminal } from './command.ts';
import { parseWords, requireNoMore } from './options.ts';
import { callService, serviceOptions, type Service } from './service.ts';

const family = 'svc1.userinterface';

/** `waymark rule insert | edit | read | history`: a client of the HTTP API. */
export const rule: Command = {
  usage:
    'rule insert JSON|@FILE|- [--vk KEY] | rule edit ID JSON|@FILE|- [--vk KEY] | ' +
    'rule read ID | rule history ID   [--url URL] [--apikey KEY] [--json]',
  summary: 'write and read page rules through the HTTP API (WAYMARK_URL, WAYMARK_APIKEY)',
  async run(words, terminal) {
    const { values, positionals } = parseWords(words, {
      ...serviceOptions,
      vk: { type: 'string' },
      json: { type: 'boolean', default: false },
    });
    const [action = '', ...rest] = positionals;
    const act = actions[action];
    if (act === undefined) throw new UsageError('insert, edit, read or history?');
    const service: Service = { ...values, env: terminal.env };
    const { answer, lines } = await act(rest, service, values.vk);
    if (values.json) say(terminal.out, JSON.stringify(answer));
    else printLines(lines, answer, terminal);
    return 0;
  },
};

interface Done {
  /** The envelope as the API returned it. */
  readonly answer: JsonObject;
  /** What a person or script reads instead of the envelope. */
  readonly lines: readonly string[];
}

type Act = (words: readonly string[], service: Service, vk: string | undefined) => Promise<Done>;

const actions: Readonly<Partial<Record<string, Act>>> = {
  async insert([source, ...more], service, vk) {
    requireNoMore(more);
    const v = await readFields(source);
    return record(await callService(service, `${family}.insert`, { v, vk }));
  },
  async edit([id, source, ...more], service, vk) {
    requireNoMore(more);
    const v = { ...(await readFields(source)), id: requireId(id) };
    return record(await callService(service, `${family}.edit`, { v, vk }));
  },
  async read([id, ...more], service) {
    requireNoMore(more);
    return record(await callService(service, `${family}.read`, { v: { id: requireId(id) } }));
  },
  async history([id, ...more], service) {
    requireNoMore(more);
    const v = { id: requireId(id) };
    const answer = await callService(service, `${family}.read`, { v, qk: 'history' });
    const rows = isJsonObject(answer.data) ? answer.data.rows : [];
    return { answer, lines: (rows as unknown as readonly HistoryRow[]).map(historyLine) };
  },
};

function record(answer: JsonObject): Done {
  return { answer, lines: [JSON.stringify(answer.data, undefined, 2)] };
}

function historyLine({ seq, dtu_txn: at, action, by, data }: HistoryRow): string {
  return [seq, at, action, by, JSON.stringify(data)].join('\t');
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
