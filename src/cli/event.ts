import type { WaymarkEvent } from '../model/event.ts';
import type { KnownEventType } from '../model/event-types.ts';
import type { JsonObject } from '../model/json.ts';
import { clientCommand, parseObject, readText, table, unknownsOf, type Act } from './client.ts';
import { callService } from './service.ts';

/** Events that are listed unless more are asked for. */
const eventsShown = 20;

const insert: Act = {
  summary: 'insert an event; hooks for its type deliver it',
  words: { '<type>': 'such as sale.completed' },
  takes: {
    data: { value: 'json', description: 'what the event tells: JSON, @FILE, or - for stdin' },
    occurred_at: { value: 'time', description: 'when it happened, a date-time' },
    counter: { value: 'name', description: 'where it happened' },
  },
  writes: true,
  async *run([type = ''], { service, vk, stdin, input: { data, ...input } }) {
    const given = typeof data === 'string' && parseObject(await readText(data, stdin), '--data');
    const v = { ...input, type, ...(given !== false && { data: given }) };
    const answer = await callService(service, 'svc1.event.insert', { v, vk });
    const { id, hooks } = answer.data as unknown as { readonly id: string; readonly hooks: number };
    const unfit = unknownsOf(answer);
    yield {
      answer,
      lines: [id],
      notes: [
        `Taken; ${hooks === 1 ? 'one hook gets' : `${hooks} hooks get`} it.`,
        ...(unfit.length === 0 ? [] : [`Not as ${type} has it: ${unfit.join(', ')}.`]),
      ],
    };
  },
};

const read: Act = {
  summary: 'print an event',
  words: { '<id>': 'the id that its deliveries have' },
  async *run([id = ''], { service }) {
    const answer = await callService(service, 'svc1.event.read', { v: { id } });
    yield { answer, lines: [JSON.stringify(answer.data, undefined, 2)] };
  },
};

const list: Act = {
  summary: 'list events, the newest first',
  takes: {
    type: { value: 'type', description: 'those of a type' },
    counter: { value: 'name', description: 'those of a counter' },
    before: { value: 'seq', description: 'those before a seq', isNumber: true },
    limit: { value: 'n', description: `at most so many (${eventsShown})`, isNumber: true },
  },
  async *run(_words, { service, input }) {
    let left = typeof input.limit === 'number' ? input.limit : eventsShown;
    let before = input.before ?? null;
    let isFirst = true;
    do {
      const v: JsonObject = { ...input, limit: left, ...(before !== null && { before }) };
      const answer: JsonObject = await callService(service, 'svc1.event.list', { v });
      const { rows, next } = answer.data as unknown as EventPage;
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

const types: Act = {
  summary: 'print the known types of events, with an example each',
  async *run(_words, { service }) {
    const answer = await callService(service, 'svc1.event.types', { v: {} });
    const { rows } = answer.data as unknown as { readonly rows: readonly KnownEventType[] };
    yield {
      answer,
      lines: [
        ...rows.flatMap(({ type, summary, own, schema }) => {
          const [example] = schema.examples as readonly JsonObject[];
          const about = own ? `${summary} Waymark raises it itself.` : summary;
          return [type, `    ${about}`, `    for example ${JSON.stringify(example)}`];
        }),
        'Any other dotted name in lower case is a type as well.',
      ],
    };
  },
};

interface EventPage {
  readonly rows: readonly (Omit<WaymarkEvent, 'logSeq'> & { readonly seq: number })[];
  readonly next: number | null;
}

/** `waymark event insert | read | list | types`. */
export const defineEvent = clientCommand({
  description: 'Insert events, which hooks deliver, and read them, through the HTTP API.',
  acts: { insert, read, list, types },
});
