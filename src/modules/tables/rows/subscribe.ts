import type { StoredRow } from '../row.ts';
import { actions } from '../../../core/log/change.ts';
import { Failure } from '../../../core/values/failure.ts';
import type { JsonObject } from '../../../core/values/json/json.ts';
import type { Row } from '../row.ts';
import { needsUser } from '../../../core/http/visitor.ts';
import type { RecordChange } from '../../../core/log/store.ts';
import { defineOperation, type Call } from '../../../core/operations/operation.ts';
import { fromSeqProperty, streamFrom } from '../../../core/operations/records/stream.ts';
import { mayAccess } from './access.ts';
import { withoutHidden } from './compiled-tables.ts';
import { openTable, requireOwnRows, type RowParts, type TableCall } from './row-family.ts';

const packetName = 'svc1.record.change';
const text = { type: 'string' } as const;
const anyObject = { type: 'object', additionalProperties: true } as const;

/**
 * record.subscribe: the current seq, then a packet for each change of a row of a table after
 * `from_seq` (by default, after the current seq), in the order of seq, without gap or repeat. A
 * caller gets the changes of rows that it may read before or after the change. Refuses with
 * `invalid`, also for a seq that the log has not reached.
 */
export const subscribeToRows = defineOperation({
  name: 'svc1.record.subscribe',
  scope: 'record.read',
  tableDecides: true,
  effect: 'streams',
  summary: 'Changes of the rows of a table as they are committed, without gap or repeat.',
  input: {
    type: 'object',
    required: ['table'],
    properties: {
      table: { type: 'string', description: 'The name of the table.' },
      id: { type: 'string', nullable: true, description: 'Only changes of this row.' },
      from_seq: fromSeqProperty,
    },
  },
  output: {
    title: 'SubscribedToRows',
    type: 'object',
    required: ['seq'],
    properties: { seq: { type: 'integer', description: 'The newest change now.' } },
  },
  packets: {
    r: packetName,
    data: {
      title: 'RowChange',
      type: 'object',
      required: ['seq', 'txn', 'action', 'id', 'table', 'data', 'record'],
      properties: {
        seq: { type: 'integer', description: 'Position in the log.' },
        txn: { ...text, description: 'Id of the transaction.' },
        action: { ...text, enum: actions },
        id: { ...text, description: 'Id of the row.' },
        table: { ...text, description: 'The name of the table.' },
        data: { ...anyObject, description: 'The fields that changed; null for a removed one.' },
        record: {
          description: 'The row after the change; null if it was deleted.',
          oneOf: [anyObject, { type: 'null' }],
        },
      },
    },
  },
  failures: ['not_found'],
  run: (parts: RowParts) => async (v, call) => {
    await call.visitor.prepare(needsUser);
    const input = v as unknown as JsonObject;
    const open = openTable({ operation: 'subscribe', v: input, call }, parts.store, parts);
    const { definition } = open.table;
    requireOwnRows(definition);
    return streamFrom(parts.store, v.from_seq, {
      family: 'record',
      matches: ({ change, before, after }: RecordChange<StoredRow>) =>
        (after ?? before)?.row.table === definition.name &&
        ((v.id ?? null) === null || change.id === v.id) &&
        mayGet(input, call, parts, [before?.row, after?.row]),
    });
  },
  packet: (parts) => (given, call) => {
    const { change, before, after } = given as RecordChange<StoredRow>;
    const table = (after ?? before)?.row.table ?? '';
    // The definition and the access of the caller may have changed.
    const open = openNow({ table }, call, parts);
    const { hidden } = open.table;
    const { seq, txn, action, id, data } = change;
    const isSeen = sees(open, after?.row);
    const row = isSeen && after !== undefined ? shown(open, after.row, after.seq) : null;
    // A row that has left the view of its reader looks deleted.
    const written = isSeen && action !== 'invalidate' ? withoutHidden(hidden, data) : {};
    const seenAction = isSeen || after === undefined ? action : 'invalidate';
    const { table: _table, ...fields } = written;
    return {
      r: packetName,
      data: { seq, txn, action: seenAction, id, table, data: { id, ...fields }, record: row },
    };
  },
});

/** The table, and the access of the caller, as they are at this moment. Throws as openTable. */
function openNow(v: JsonObject, call: Call, parts: RowParts): TableCall {
  const now: Call = { ...call, visitor: currentVisitor(call) };
  return openTable({ operation: 'subscribe', v, call: now }, parts.store, parts);
}

/** Whether a caller may get a packet; without access it gets a failure, which making one throws. */
function mayGet(
  v: JsonObject,
  call: Call,
  parts: RowParts,
  rows: readonly (Row | undefined)[],
): boolean {
  try {
    const open = openNow(v, call, parts);
    return rows.some((row) => sees(open, row));
  } catch (error) {
    if (error instanceof Failure) return true;
    throw error;
  }
}

function sees({ table, access }: TableCall, row: Row | undefined): boolean {
  return row !== undefined && mayAccess(access, 'read', table.definition, row);
}

function shown({ table }: TableCall, row: Row, seq: number): JsonObject {
  return { ...withoutHidden(table.hidden, row as unknown as JsonObject), seq };
}

/** The visitor as its token is valid now; one that has to be verified again counts meanwhile. */
function currentVisitor({ visitor }: Pick<Call, 'visitor'>): Call['visitor'] {
  const now = visitor.with({});
  return now.prepare(needsUser) === undefined ? now : visitor;
}
