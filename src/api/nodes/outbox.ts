import { listRowsDefault, listRowsMax } from '../limits.ts';
import type { OutboxEntry } from '../../store/outbox.ts';
import type { Store } from '../../store/store.ts';
import { defineOperation } from '../operation.ts';

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
  summary: 'The events that this counter took and its centre has not stored yet.',
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
            id: { ...text, description: 'The id of the event.' },
            a: { ...text, description: 'The operation.' },
            v: { type: 'object', additionalProperties: true },
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

/** The claim has the hash of the request, which nobody needs. */
function entryView({ vk: _vk, ...shown }: OutboxEntry): object {
  return shown;
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

/** outbox.retry: makes a refused entry wait again, as the last. Refuses with `not_found`. */
export const retryEntry = defineOperation<OutboxParts, { n: number }>({
  name: 'svc1.outbox.retry',
  scope: 'event',
  effect: 'writes',
  summary: 'Sends an entry that the centre has refused again, after all others.',
  failures: ['not_found'],
  input: entryInput,
  output: changedEntry,
  run:
    ({ store: { outbox } }) =>
    async ({ n }) => {
      await outbox.retry(n);
      return { kind: 'data', data: { n } };
    },
});

/** outbox.discard: removes a refused entry. Refuses with `not_found`. */
export const discardEntry = defineOperation<OutboxParts, { n: number }>({
  name: 'svc1.outbox.discard',
  scope: 'event',
  effect: 'writes',
  summary: 'Removes an entry that the centre has refused from the outbox.',
  failures: ['not_found'],
  input: entryInput,
  output: changedEntry,
  run:
    ({ store: { outbox } }) =>
    async ({ n }) => {
      await outbox.discard(n);
      return { kind: 'data', data: { n } };
    },
});
