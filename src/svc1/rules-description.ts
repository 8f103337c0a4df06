import { actions } from '../model/change.ts';
import type { JsonObject } from '../model/json.ts';
import type { Description } from './operation.ts';
import { newRule, pageRule, ruleEdit, vkMember, writtenRule } from './record-schema.ts';

const anyObject = { type: 'object', additionalProperties: true } as const;
const dateTime = { type: 'string', format: 'date-time' } as const;

/** A row of the log as the history shows it (seed 2.2). */
const historyRow: JsonObject = {
  title: 'HistoryRow',
  type: 'object',
  required: ['seq', 'txn', 'by', 'action', 'dtu_stored', 'dtu_txn'],
  properties: {
    seq: { type: 'integer', description: 'Position in the log.' },
    txn: { type: 'string', description: 'Id of the transaction; rows of one import share it.' },
    by: { type: 'string', description: 'Id of the key that wrote it, or the name of a command.' },
    action: { type: 'string', enum: actions },
    dtu_stored: dateTime,
    dtu_txn: dateTime,
    data: {
      ...anyObject,
      description:
        'The fields that it wrote; of an edit those that changed, null for a removed one.',
    },
    invalidated: { ...dateTime, description: 'When the row was taken out of force.' },
    data_invalidated: { ...anyObject, description: 'In place of data, of such a row.' },
  },
};

/** What the documents say of userinterface.insert. */
export const insertDescription: Description = {
  summary: 'Adds a page rule.',
  fields: newRule,
  envelope: { vk: vkMember },
  output: writtenRule,
  etag: true,
  failures: ['conflict'],
};

/** What the documents say of userinterface.edit. */
export const editDescription: Description = {
  summary: 'Changes the fields of a page rule that are sent, null removing one.',
  fields: ruleEdit,
  envelope: { vk: vkMember },
  output: writtenRule,
  etag: true,
  failures: ['not_found', 'conflict', 'precondition_failed'],
};

/** What the documents say of userinterface.read. */
export const readDescription: Description = {
  summary: 'A page rule whole, or with the query kind history its rows, newest first.',
  envelope: {
    qk: { type: 'string', enum: ['history'], description: 'The rows instead of the record.' },
  },
  output: {
    oneOf: [
      pageRule,
      {
        title: 'History',
        type: 'object',
        required: ['rows'],
        properties: { rows: { type: 'array', items: historyRow } },
      },
    ],
  },
  etag: true,
  failures: ['not_found'],
};
