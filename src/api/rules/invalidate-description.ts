import type { JsonObject } from '../../model/json.ts';
import { invalidateListedMax } from './limits.ts';
import type { Description } from '../operation.ts';
import { vkMember } from './record-schema.ts';
import type { RecordRevert } from '../records/revert.ts';

const count = (description: string): JsonObject => ({ type: 'integer', description });
const seqs = { type: 'array', items: { type: 'integer' } } as const;
const id = { type: 'string' } as const;
const ids = {
  type: 'array',
  items: id,
  description: `Ids of the first ${invalidateListedMax} records.`,
} as const;
const becomings: readonly RecordRevert['becomes'][] = ['gone', 'restored', 'changed', 'same'];

const dryRun: JsonObject = {
  title: 'InvalidateDryRun',
  type: 'object',
  required: [
    ...['done', 'records', 'rows', 'gone', 'restored', 'changed', 'ids', 'changes', 'conflicts'],
    ...['conflicting', 'unlisted', 'digest'],
  ],
  properties: {
    done: { const: false },
    records: count('How many records it would touch.'),
    rows: count('How many rows of the history it would take out of force.'),
    gone: count('How many records would be gone.'),
    restored: count('How many would be there again.'),
    changed: count('How many would change.'),
    ids,
    changes: {
      type: 'array',
      items: {
        type: 'object',
        required: ['id', 'rows', 'becomes', 'fields'],
        properties: {
          id,
          rows: seqs,
          becomes: { type: 'string', enum: becomings },
          fields: {
            type: 'object',
            description: 'Each field that would change, long values by their beginning.',
            additionalProperties: {
              type: 'object',
              required: ['now', 'then'],
              properties: { now: {}, then: {} },
            },
          },
        },
      },
    },
    conflicts: {
      type: 'array',
      description: 'Records that were edited again since, with the seqs of those edits.',
      items: {
        type: 'object',
        required: ['id', 'rows'],
        properties: { id, rows: seqs },
      },
    },
    conflicting: count('How many such records there are.'),
    unlisted: count('How many records are counted and not listed.'),
    digest: { type: 'string', description: 'Goes into confirm to have it done.' },
  },
};

const done: JsonObject = {
  title: 'InvalidateDone',
  type: 'object',
  required: ['done', 'txn', 'seq', 'records', 'rows', 'ids', 'unlisted'],
  properties: {
    done: { const: true },
    txn: { type: ['string', 'null'], description: 'Its transaction, which can be invalidated.' },
    seq: { type: ['integer', 'null'], description: 'Seq of its last row.' },
    records: count('How many records it touched.'),
    rows: count('How many rows of the history it took out of force.'),
    ids,
    unlisted: count('How many records are counted and not listed.'),
  },
};

/** What the documents say of userinterface.invalidate. */
export const invalidateDescription: Description = {
  summary: 'Takes changes back; without confirm it says what would happen, and does nothing.',
  envelope: { vk: vkMember },
  output: { oneOf: [dryRun, done] },
  failures: ['not_found', 'conflict', 'precondition_failed'],
};
