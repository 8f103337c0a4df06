import { type Call, authorOf, defineOperation } from '../../../core/operations/operation.ts';
import { Failure, failureFrom } from '../../../core/values/failure.ts';
import type { Static, StaticInput } from '../../../core/values/json/static.ts';
import { hasScope } from '../../../core/values/key.ts';
import { parseDateTime } from '../../../core/values/time.ts';
import type { RowParts } from '../../tables/rows/row-family.ts';
import { type EventParts, storeTakenEvent } from '../../webhooks/operations/events.ts';
import { eventInsert, rowInsert } from '../log/outbox.ts';
import { nodeProperties, requireNode } from './access.ts';
import { storeTakenRow } from './taken-rows.ts';
import { rowLogPart } from '../log/open-row-log.ts';

/** Entries of an outbox in one request. */
const takenEntriesMax = 1_000;

const text = { type: 'string' } as const;

const entrySchema = {
  type: 'object',
  required: ['id', 'a', 'v', 'dtu_txn'],
  properties: {
    id: { ...text, pattern: '^[0-9a-f-]{36}$', description: 'The id of the new record.' },
    a: { ...text, description: 'The operation.' },
    v: { type: 'object', required: [], additionalProperties: true },
    dtu_txn: { ...text, description: 'When the node took it.' },
  },
} as const;

type TakenEntry = Static<typeof entrySchema>;

const insertInput = {
  type: 'object',
  required: ['node', 'entries'],
  // A node may be of a later version than its centre.
  additionalProperties: true,
  properties: {
    ...nodeProperties,
    log: {
      ...text,
      nullable: true,
      description: 'The id of the log that the node follows; a server with another one refuses.',
    },
    entries: { type: 'array', maxItems: takenEntriesMax, items: entrySchema },
  },
} as const;

type InsertInput = StaticInput<typeof insertInput>;

/**
 * node.insert: stores the writes that a node accepted without the centre, in order, each entry
 * once. A refused entry does not stop the next ones (docs/design/nodes.md#outbox).
 */
export const insertFromNode = defineOperation({
  name: 'svc1.node.insert',
  scope: 'follow',
  effect: 'writes',
  summary: 'Stores the entries of the outbox of a counter, in order and each once.',
  input: insertInput,
  output: {
    title: 'TakenEntries',
    type: 'object',
    required: ['results'],
    properties: {
      results: {
        type: 'array',
        items: {
          type: 'object',
          required: ['id'],
          properties: {
            id: text,
            seq: { type: 'integer', description: 'Its position in the log.' },
            error: {
              type: 'object',
              required: ['code', 'message'],
              properties: { code: text, message: text },
            },
          },
        },
      },
    },
  },
  run: (parts: EventParts & RowParts) => async (v, call) => {
    requireNode(parts.store, v, call);
    requireSameLog(parts.store, v);
    // The store decides them in the order of these calls, and writes them together.
    const results = v.entries.map(async (entry) => {
      try {
        return { id: entry.id, seq: await storeEntry(parts, v.node, entry, call) };
      } catch (thrown) {
        const { code, message } = failureFrom(thrown);
        // A temporary failure must not refuse the entry: the node sends it again.
        if (passing.has(code)) throw thrown;
        return { id: entry.id, error: { code, message } };
      }
    });
    return { kind: 'data', data: { results: await Promise.all(results) } };
  },
});

/**
 * Throws `unavailable` for a node that has copied another log. It copies this one first, and then
 * knows which of the entries that the former centre has stored are lost.
 */
function requireSameLog(
  { part }: Pick<EventParts['store'], 'part'>,
  { node, log }: InsertInput,
): void {
  if (log === undefined || log === part(rowLogPart).identity().id) return;
  throw new Failure(
    'unavailable',
    `The node ${node} follows another log than this server has: it copies this one first.`,
    { retryAfterSeconds: 5 },
  );
}

const passing: ReadonlySet<string> = new Set(['unavailable', 'storage_full', 'internal']);

async function storeEntry(
  parts: EventParts & RowParts,
  node: string,
  { id, a, v, dtu_txn }: TakenEntry,
  call: Call,
): Promise<number> {
  const takenMs = Date.parse(parseDateTime(dtu_txn) ?? '');
  const decidedMs = Number.isNaN(takenMs) ? parts.now() : Math.min(takenMs, parts.now());
  const decided = new Date(decidedMs).toISOString();
  if (a === rowInsert) return storeTakenRow(parts, { id, v, dtu_txn: decided }, call);
  if (a !== eventInsert) {
    throw new Failure('unprocessable', `This server stores no entries of ${a} for a node.`);
  }
  if (!hasScope(call.caller, 'event') && v.type !== 'error.detected') {
    throw new Failure('forbidden', 'The key of the node lacks the scope event.');
  }
  const by = authorOf(call);
  return storeTakenEvent(parts, { node, id, v, by, dtu_txn: decided });
}
