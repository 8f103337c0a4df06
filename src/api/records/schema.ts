import { actions } from '../../model/change.ts';
import type { JsonObject } from '../../model/json.ts';

const anyObject = { type: 'object', additionalProperties: true } as const;
const dateTime = { type: 'string', format: 'date-time' } as const;

/** A row of the log as the history shows it (docs/design/history.md#history-rows). */
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
        'The fields that it wrote; of an edit those that changed, null for a removed one. ' +
        'A header value that the record has no more is *** without the scope design.',
    },
    invalidated: { ...dateTime, description: 'When the row was taken out of force.' },
    data_invalidated: { ...anyObject, description: 'In place of data, of such a row.' },
  },
};

/** What a read with the query kind history answers. */
export const historyRows: JsonObject = {
  title: 'History',
  type: 'object',
  required: ['rows', 'next'],
  properties: {
    rows: { type: 'array', items: historyRow },
    next: {
      type: ['integer', 'null'],
      description: 'Goes into before for the next page; null at the end.',
    },
  },
};

/** The query kind of a read (docs/design/operations.md#envelope). */
export const historyQuery: JsonObject = {
  type: 'string',
  enum: ['history'],
  description: 'The rows instead of the record.',
};
