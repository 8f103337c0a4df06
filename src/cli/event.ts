import type { WaymarkEvent } from '../model/event.ts';
import type { KnownEventType } from '../model/event-types.ts';
import type { JsonObject } from '../model/json.ts';
import { clientCommand, parseObject, readText, table, unknownsOf, type Act } from './client.ts';
import { UsageError } from './command.ts';
import { requireNoMore } from './options.ts';
import { callService } from './service.ts';

/** Events that are listed unless more are asked for. */
const eventsShown = 20;

const insert: Act = {
  takes: { data: 'text', occurred_at: 'text', counter: 'text' },
  writes: true,
  async *run([type, ...more], { service, vk, stdin, input: { data, ...input } }) {
    requireNoMore(more);
    if (type === undefined) throw new UsageError('Which type? For example: sale.completed.');
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

const list: Act = {
  takes: { type: 'text', counter: 'text', before: 'number', limit: 'number' },
  async *run(words, { service, input }) {
    requireNoMore(words);
    let left = typeof input.limit === 'number' ? input.limit : eventsShown;
    let before = input.before ?? null;
    do {
      const v: JsonObject = { ...input, limit: left, ...(before !== null && { before }) };
      const answer: JsonObject = await callService(service, 'svc1.event.list', { v });
      const { rows, next } = answer.data as unknown as EventPage;
      const cells = rows.map(({ id, type, occurred_at, counter, data, seq }) => [
        ...[String(seq), occurred_at, type, counter ?? '-', id, JSON.stringify(data)],
      ]);
      yield { answer, lines: table(['SEQ', 'OCCURRED', 'TYPE', 'COUNTER', 'ID', 'DATA'], cells) };
      left -= rows.length;
      before = next;
    } while (left > 0 && before !== null);
  },
};

const types: Act = {
  takes: {},
  async *run(words, { service }) {
    requireNoMore(words);
    const answer = await callService(service, 'svc1.event.types', { v: {} });
    const { rows } = answer.data as unknown as { readonly rows: readonly KnownEventType[] };
    yield {
      answer,
      lines: [
        ...rows.flatMap(({ type, summary, schema }) => {
          const [example] = schema.examples as readonly JsonObject[];
          return [type, `    ${summary}`, `    for example ${JSON.stringify(example)}`];
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

/** `waymark event insert | list | types`. */
export const event = clientCommand({
  usage:
    'event insert TYPE [--data JSON|@FILE|-] [--occurred-at T] [--counter C] [--vk KEY] | ' +
    'event list [--type T] [--counter C] [--before SEQ] [--limit N] | event types',
  summary: 'tell hooks what has happened, and see what they were told,',
  acts: { insert, list, types },
});
