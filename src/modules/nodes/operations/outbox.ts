import type { Store } from '../../../core/log/store.ts';
import { listRowsDefault, listRowsMax } from '../../../core/operations/limits.ts';
import { type OperationDefinition, defineOperation } from '../../../core/operations/operation.ts';
import { Failure } from '../../../core/values/failure.ts';
import type { StaticOutput } from '../../../core/values/json/static.ts';
import { type OutboxEntry, rowInsert } from '../log/outbox.ts';
import { outboxPart } from '../log/outbox-entries.ts';

/** Refused entries that one call changes. */
const outboxChangedAtOnce = 1_000;

const count = { type: 'integer', minimum: 0 } as const;
const text = { type: 'string' } as const;

interface OutboxParts {
  readonly store: Pick<Store, 'part'>;
}

const entrySchema = {
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
} as const;

/** outbox.list: the entries that wait for the centre, or that it has refused. */
export const listOutbox = defineOperation({
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
      code: {
        ...text,
        nullable: true,
        description: 'With refused: only entries that were refused with this code.',
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
        items: entrySchema,
      },
      waiting: { ...count, description: 'Number of entries that wait.' },
      refused: { ...count, description: 'Number of entries that were refused.' },
    },
  },
  run:
    ({ store }: OutboxParts) =>
    ({ refused = false, code, after = 0, limit = listRowsDefault }) => {
      const outbox = store.part(outboxPart);
      const { bytes: _bytes, ...counts } = outbox.counts();
      const rows = refused ? outbox.refused({ code, after, limit }) : outbox.waiting(limit);
      return { kind: 'data', data: { rows: rows.map(entryView), ...counts } };
    },
});

/**
 * An entry without its claim. It shows only the table of a row: a caller that may see the outbox
 * may not see every table, and no caller sees a `writeOnly` field.
 */
function entryView({ vk: _vk, ...entry }: OutboxEntry): StaticOutput<typeof entrySchema> {
  const { a, v } = entry;
  return a === rowInsert ? { ...entry, v: { table: v.table ?? null } } : entry;
}

const entriesInput = {
  type: 'object',
  properties: {
    n: { type: 'integer', minimum: 1, nullable: true, description: 'The place of one entry.' },
    all: {
      type: 'boolean',
      nullable: true,
      description: 'All refused entries, at most 1,000 in one call.',
    },
    code: {
      ...text,
      nullable: true,
      description: 'With all: only entries that were refused with this code.',
    },
    after: { ...count, nullable: true, description: 'With all: entries after this n.' },
    up_to: {
      ...count,
      nullable: true,
      description: 'With all: entries up to this n; by default the newest.',
    },
  },
} as const;

const changedEntries = {
  title: 'OutboxChanged',
  type: 'object',
  required: ['count', 'next', 'up_to'],
  properties: {
    count: { ...count, description: 'Number of entries that were changed.' },
    next: {
      type: ['integer', 'null'],
      description: 'If there can be further entries, the `after` of the call for them.',
    },
    up_to: { ...count, description: 'The `up_to` of that call.' },
  },
} as const;

/** An operation that changes refused entries. Refuses with `not_found` an n that is none. */
function changeEntries(
  verb: 'retry' | 'discard',
  summary: string,
): OperationDefinition<OutboxParts> {
  return defineOperation({
    name: `svc1.outbox.${verb}`,
    scope: 'event',
    effect: 'writes',
    summary,
    failures: ['not_found'],
    input: entriesInput,
    output: changedEntries,
    run:
      ({ store }: OutboxParts) =>
      async ({ n, all = false, code, after = 0, up_to: end }) => {
        const outbox = store.part(outboxPart);
        const upTo = end ?? outbox.newest();
        if (all === (n !== undefined)) {
          throw new Failure('invalid', 'Say which entries: `n` of one, or `all`.', { field: 'n' });
        }
        if (n !== undefined) {
          await outbox[verb](n);
          return { kind: 'data', data: { count: 1, next: null, up_to: n } };
        }
        const which = { after, upTo, code, limit: outboxChangedAtOnce };
        const places = await outbox.changeRefused(verb, which);
        const next = places.length < outboxChangedAtOnce ? null : (places.at(-1) ?? null);
        return { kind: 'data', data: { count: places.length, next, up_to: upTo } };
      },
  });
}

/** outbox.retry: makes refused entries wait again, as the last ones. */
export const retryEntry = changeEntries(
  'retry',
  'Sends an entry, or all entries, that the centre has refused again, after all others.',
);

/** outbox.discard: removes refused entries. */
export const discardEntry = changeEntries(
  'discard',
  'Removes an entry, or all entries, that the centre has refused from the outbox.',
);
