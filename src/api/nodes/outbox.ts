import { listRowsDefault, listRowsMax } from '../limits.ts';
import type { OutboxEntry } from '../../store/outbox.ts';
import type { Store } from '../../store/store.ts';
import { defineOperation, type OperationDefinition } from '../operation.ts';
import { rowInsert } from '../../store/outbox.ts';

const count = { type: 'integer', minimum: 0 } as const;
const text = { type: 'string' } as const;

interface OutboxParts {
  readonly store: Pick<Store, 'outbox'>;
}

/** outbox.list: the entries that wait for the centre, or that it has refused. */
export const listOutbox = defineOperation<
  OutboxParts,
  { refused?: boolean; after?: number; limit?: number }
>({
  name: 'svc1.outbox.list',
  scope: 'read',
  effect: 'reads',
  summary: 'The events and rows that this counter took and its centre has not stored yet.',
  input: {
    type: 'object',
    properties: {
      refused: {
        type: 'boolean',
        nullable: true,
        description: 'Only entries that the centre has refused.',
      },
      after: { ...count, nullable: true, description: 'With refused: entries after this n.' },
      limit: { type: 'integer', minimum: 1, maximum: listRowsMax, nullable: true },
    },
  },
  output: {
    title: 'OutboxList',
    type: 'object',
    required: ['rows', 'waiting', 'refused'],
    properties: {
      rows: {
        type: 'array',
        items: {
          title: 'OutboxEntry',
          type: 'object',
          required: ['n', 'id', 'a', 'v', 'dtu_txn', 'by'],
          properties: {
            n: { ...count, description: 'Its place in the outbox.' },
            id: { ...text, description: 'The id of the event or row.' },
            a: { ...text, description: 'The operation.' },
            v: {
              type: 'object',
              additionalProperties: true,
              description: 'Its input; of a row only the table.',
            },
            dtu_txn: { ...text, description: 'When this node took it.' },
            by: { ...text, description: 'The key of the caller.' },
            refused: {
              type: 'object',
              required: ['code', 'message', 'at'],
              properties: { code: text, message: text, at: text },
            },
          },
        },
      },
      waiting: { ...count, description: 'Number of entries that wait.' },
      refused: { ...count, description: 'Number of entries that were refused.' },
    },
  },
  run:
    ({ store: { outbox } }) =>
    ({ refused = false, after = 0, limit = listRowsDefault }) => {
      const rows = refused ? outbox.refused(after, limit) : outbox.waiting(limit);
      return { kind: 'data', data: { rows: rows.map(entryView), ...outbox.counts() } };
    },
});

/**
 * An entry without its claim. It shows only the table of a row: a caller that may see the outbox
 * may not see every table, and no caller sees a `writeOnly` field.
 */
function entryView({ vk: _vk, ...entry }: OutboxEntry): object {
  const { a, v } = entry;
  return a === rowInsert ? { ...entry, v: { table: v.table ?? null } } : entry;
}

const entryInput = {
  type: 'object',
  required: ['n'],
  properties: { n: { type: 'integer', minimum: 1, description: 'The place of the entry.' } },
} as const;

const changedEntry = {
  title: 'OutboxChanged',
  type: 'object',
  required: ['n'],
  properties: { n: count },
} as const;

/** An operation that changes a refused entry. Refuses with `not_found`. */
function changeEntry(verb: 'retry' | 'discard', summary: string): OperationDefinition<OutboxParts> {
  return defineOperation<OutboxParts, { n: number }>({
    name: `svc1.outbox.${verb}`,
    scope: 'event',
    effect: 'writes',
    summary,
    failures: ['not_found'],
    input: entryInput,
    output: changedEntry,
    run:
      ({ store: { outbox } }) =>
      async ({ n }) => {
        await outbox[verb](n);
        return { kind: 'data', data: { n } };
      },
  });
}

/** outbox.retry: makes a refused entry wait again, as the last. */
export const retryEntry = changeEntry(
  'retry',
  'Sends an entry that the centre has refused again, after all others.',
);

/** outbox.discard: removes a refused entry. */
export const discardEntry = changeEntry(
  'discard',
  'Removes an entry that the centre has refused from the outbox.',
);
