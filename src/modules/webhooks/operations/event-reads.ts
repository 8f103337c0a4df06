import { type WaymarkEvent, eventOf } from '../../../core/log/events/event.ts';
import type { Reads } from '../../../core/log/store.ts';
import {
  listCharactersMax,
  listRowsDefault,
  listRowsMax,
  ruleCharacters,
} from '../../../core/operations/limits.ts';
import { defineOperation } from '../../../core/operations/operation.ts';
import { noSuchRecord } from '../../../core/operations/records/read.ts';
import { turnsOf } from '../../../core/operations/turns.ts';
import type { StaticOutput } from '../../../core/values/json/static.ts';

/** Changes that are examined for one page of a list of events. */
const eventsExaminedMax = 20_000;

const text = { type: 'string' } as const;
const optionalText = { type: 'string', nullable: true } as const;

const eventSchema = {
  title: 'Event',
  type: 'object',
  required: ['id', 'type', 'occurred_at', 'counter', 'data', 'seq'],
  properties: {
    id: text,
    type: text,
    occurred_at: { ...text, format: 'date-time' },
    counter: { type: ['string', 'null'] },
    data: { type: 'object', additionalProperties: true },
    seq: { type: 'integer', description: 'Position in the log.' },
  },
} as const;

/**
 * event.list: events, newest first, with those that Waymark raises itself. `next` is the `before`
 * of the next page, and null at the end. A page may have fewer rows than `limit` and still have a
 * next one, because the work for one page is limited.
 */
export const listEvents = defineOperation({
  name: 'svc1.event.list',
  scope: 'verify',
  effect: 'reads',
  summary: 'Events that match all filters, newest first.',
  output: {
    title: 'EventList',
    type: 'object',
    required: ['rows', 'next'],
    properties: {
      rows: { type: 'array', items: eventSchema },
      next: {
        type: ['integer', 'null'],
        description: 'Send it as before to get the next page; null at the end.',
      },
    },
  },
  input: {
    type: 'object',
    properties: {
      type: { ...optionalText, description: 'The type of the events.' },
      counter: { ...optionalText, description: 'The trading counter of the events.' },
      before: {
        type: 'integer',
        minimum: 1,
        nullable: true,
        description: 'The next of the page before: only events before this seq.',
      },
      limit: { type: 'integer', minimum: 1, maximum: listRowsMax, nullable: true },
    },
  },
  run:
    ({ store }: { readonly store: Pick<Reads, 'seq' | 'change' | 'rowBytes'> }) =>
    async ({ before, limit = listRowsDefault, type, counter }, call) => {
      const rows: ReturnType<typeof eventView>[] = [];
      const turns = turnsOf(call);
      let [characters, examined] = [0, 0];
      const newest = store.seq();
      for (let seq = Math.min(newest, (before ?? Infinity) - 1); seq > 0; seq -= 1) {
        if (turns.isOver()) await turns.next();
        const change = store.change(seq);
        if (change === undefined) continue;
        examined += 1 + Math.floor(store.rowBytes(seq) / ruleCharacters);
        const event = eventOf(change);
        if (event !== undefined && isMatch(event, { type, counter })) {
          rows.push(eventView(event));
          characters += JSON.stringify(event.data).length;
        }
        const isFull = rows.length === limit || characters > listCharactersMax;
        if (isFull || examined >= eventsExaminedMax) {
          return { kind: 'data', data: { rows, next: seq > 1 ? seq : null } };
        }
      }
      return { kind: 'data', data: { rows, next: null } };
    },
});

/**
 * event.read: an event by the id that its deliveries have. A receiver that trusts no delivery reads
 * the event here. Refuses with `not_found`.
 */
export const readEvent = defineOperation({
  name: 'svc1.event.read',
  scope: 'verify',
  effect: 'reads',
  summary: 'An event by its id: the data of a delivery, as Waymark stores it.',
  output: eventSchema,
  failures: ['not_found'],
  input: { type: 'object', required: ['id'], properties: { id: text } },
  run:
    ({ store }: { readonly store: Pick<Reads, 'rows' | 'change'> }) =>
    ({ id }) => {
      const [inserted] = store.rows('event', id);
      // The id of an event about a change of a record ends with the seq of the change.
      const [, seq] = /-(\d{1,15})$/.exec(id) ?? [];
      const change = inserted ?? (seq === undefined ? undefined : store.change(Number(seq)));
      const event = change && eventOf(change);
      if (event?.id !== id) throw noSuchRecord({ noun: 'event' }, id);
      return { kind: 'data', data: eventView(event) };
    },
});

function isMatch(
  event: WaymarkEvent,
  { type, counter }: { readonly type: string | undefined; readonly counter: string | undefined },
): boolean {
  if (type !== undefined && event.type !== type) return false;
  return counter === undefined || event.counter === counter;
}

function eventView({
  id,
  type,
  occurred_at,
  counter,
  data,
  logSeq,
}: WaymarkEvent): StaticOutput<typeof eventSchema> {
  return { id, type, occurred_at, counter, data, seq: logSeq };
}
