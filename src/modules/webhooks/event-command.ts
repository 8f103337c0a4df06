import type { Json, JsonObject } from '../../core/values/json/json.ts';
import {
  clientCommand,
  parseObject,
  readText,
  table,
  unknownsOf,
  warningsOf,
  type Subcommand,
} from '../../cli/remote/client-command.ts';
import { callApi } from '../../cli/remote/api-client.ts';
import { operationSubcommands } from '../../cli/remote/operation-command.ts';

/** Events that are listed without `--limit`. */
const eventsShown = 20;

const insert: Subcommand = {
  summary: 'insert an event; hooks for its type deliver it',
  args: { '<type>': 'such as sale.completed' },
  options: {
    data: {
      value: 'json',
      description: 'the data of the event: JSON, @FILE, or - for standard input',
    },
    occurred_at: { value: 'time', description: 'when it happened: a date-time' },
    counter: { value: 'name', description: 'where it happened' },
  },
  writes: true,
  async *run([type = ''], { api, vk, stdin, input: { data, ...input } }) {
    const parsed = typeof data === 'string' && parseObject(await readText(data, stdin), '--data');
    const v = { ...input, type, ...(parsed !== false && { data: parsed }) };
    const answer = await callApi(api, 'event.insert', { v, vk });
    const { id, hooks } = answer.data;
    const unexpected = unknownsOf(answer);
    yield {
      answer,
      lines: [id],
      notes: [
        `Inserted; ${hooks === 1 ? 'one hook gets' : `${hooks} hooks get`} it.`,
        ...(unexpected.length === 0
          ? []
          : [`These members do not match the schema of ${type}: ${unexpected.join(', ')}.`]),
        ...warningsOf(answer),
      ],
    };
  },
};

const read: Subcommand = {
  summary: 'print an event',
  args: { '<id>': 'the id of the event, which its deliveries have as well' },
  async *run([id = ''], { api }) {
    const answer = await callApi(api, 'event.read', { v: { id } });
    yield { answer, lines: [JSON.stringify(answer.data, undefined, 2)] };
  },
};

const list: Subcommand = {
  summary: 'list events, the newest first',
  options: {
    type: { value: 'type', description: 'only events of this type' },
    counter: { value: 'name', description: 'only events of this counter' },
    before: { value: 'seq', description: 'only events before this seq', isNumber: true },
    limit: { value: 'n', description: `at most this many (${eventsShown})`, isNumber: true },
  },
  async *run(_args, { api, input }) {
    let left = typeof input.limit === 'number' ? input.limit : eventsShown;
    let before: Json = input.before ?? null;
    let isFirst = true;
    do {
      const v: JsonObject = { ...input, limit: left, ...(before !== null && { before }) };
      const answer = await callApi(api, 'event.list', { v });
      const { rows, next } = answer.data;
      const cells = rows.map(({ id, type, occurred_at, counter, data, seq }) => [
        ...[String(seq), occurred_at, type, counter ?? '-', id, JSON.stringify(data)],
      ]);
      const heading = ['SEQ', 'OCCURRED', 'TYPE', 'COUNTER', 'ID', 'DATA'];
      const lines = table(heading, cells);
      yield { answer, lines: isFirst ? lines : lines.slice(1) };
      isFirst = false;
      left -= rows.length;
      before = next;
    } while (left > 0 && before !== null);
  },
};

const types: Subcommand = {
  summary: 'print the known event types, each with an example',
  async *run(_args, { api }) {
    const answer = await callApi(api, 'event.types', { v: {} });
    const { rows } = answer.data;
    yield {
      answer,
      lines: [
        ...rows.flatMap(({ type, summary, own, schema }) => {
          const { examples = [] } = schema as { readonly examples?: readonly JsonObject[] };
          const about = own ? `${summary} Waymark raises it itself.` : summary;
          const shown = examples.slice(0, 1).map((one) => `    for example ${JSON.stringify(one)}`);
          return [type, `    ${about}`, ...shown];
        }),
        'Any other name in lower case with dots is a valid type, too.',
      ],
    };
  },
};

/** `waymark event insert | read | list | types`. */
export const defineEvent = clientCommand({
  description: 'Insert and read events through the HTTP API; hooks deliver them.',
  subcommands: operationSubcommands('event', { insert, read, list, types }),
});
