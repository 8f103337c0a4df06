import { setImmediate as nextTurn } from 'node:timers/promises';
import { eventOf, type WaymarkEvent } from '../../model/event.ts';
import { listCharactersMax, listRowsDefault, listRowsMax, ruleCharacters } from '../limits.ts';
import { eventSliceRows, eventsExaminedMax } from './limits.ts';
import { Failure } from '../../model/failure.ts';
import type { Reads } from '../../store/store.ts';
import { eventReadDescription, listedEvents } from './events-description.ts';
import type { Handler } from '../operation.ts';

interface ListInput {
  type?: string;
  counter?: string;
  before?: number;
  limit?: number;
}

const optionalText = { type: 'string', nullable: true } as const;

/**
 * event.list: events, newest first, Waymark's own included. `next` goes into `before` for the next
 * page, and is null at the end; a page may be short of `limit` and still have a next one.
 */
export function listEvents({
  store,
}: {
  readonly store: Pick<Reads, 'seq' | 'change' | 'rowBytes'>;
}): Handler<ListInput> {
  return {
    summary: 'Events that all filters let through, newest first.',
    output: listedEvents,
    input: {
      type: 'object',
      properties: {
        type: optionalText,
        counter: optionalText,
        before: {
          type: 'integer',
          minimum: 1,
          nullable: true,
          description: 'The next of the page before: only events in front of this seq.',
        },
        limit: { type: 'integer', minimum: 1, maximum: listRowsMax, nullable: true },
      },
    },
    run: async ({ before, limit = listRowsDefault, type, counter }, call) => {
      const rows: object[] = [];
      let [characters, examined, inSlice] = [0, 0, 0];
      const newest = store.seq();
      for (let seq = Math.min(newest, (before ?? Infinity) - 1); seq > 0; seq -= 1) {
        const change = store.change(seq);
        if (change === undefined) continue;
        const cost = 1 + Math.floor(store.rowBytes(seq) / ruleCharacters);
        [examined, inSlice] = [examined + cost, inSlice + cost];
        const event = eventOf(change);
        if (event !== undefined && isSought(event, { type, counter })) {
          rows.push(eventView(event));
          characters += JSON.stringify(event.data).length;
        }
        const isFull = rows.length === limit || characters > listCharactersMax;
        if (isFull || examined >= eventsExaminedMax) {
          return { kind: 'data', data: { rows, next: seq > 1 ? seq : null } };
        }
        if (inSlice < eventSliceRows) continue;
        inSlice = 0;
        await nextTurn(undefined, { signal: call.signal() });
      }
      return { kind: 'data', data: { rows, next: null } };
    },
  };
}

/**
 * event.read: an event by the id that its deliveries have, for a receiver that takes a delivery for
 * no more than a hint. Refuses with `not_found`.
 */
export function readEvent({
  store,
}: {
  readonly store: Pick<Reads, 'rows' | 'change'>;
}): Handler<{ id: string }> {
  return {
    ...eventReadDescription,
    input: { type: 'object', required: ['id'], properties: { id: { type: 'string' } } },
    run: ({ id }) => {
      const [inserted] = store.rows('event', id);
      // The id of an event that a change of a record is ends in the place of that in the log.
      const [, seq] = /-(\d{1,15})$/.exec(id) ?? [];
      const change = inserted ?? (seq === undefined ? undefined : store.change(Number(seq)));
      const event = change && eventOf(change);
      if (event?.id !== id) {
        const message = `There is no event ${JSON.stringify(id.slice(0, shownIdCharactersMax))}.`;
        throw new Failure('not_found', message, { field: 'id' });
      }
      return { kind: 'data', data: eventView(event) };
    },
  };
}

const shownIdCharactersMax = 80;

function isSought(
  event: WaymarkEvent,
  { type, counter }: { readonly type: string | undefined; readonly counter: string | undefined },
): boolean {
  if (type !== undefined && event.type !== type) return false;
  return counter === undefined || event.counter === counter;
}

function eventView({ id, type, occurred_at, counter, data, logSeq }: WaymarkEvent): object {
  return { id, type, occurred_at, counter, data, seq: logSeq };
}
