import { Readable } from 'node:stream';
import { catchUpTo } from '../../../core/log/catch-up.ts';
import type { Store } from '../../../core/log/store.ts';
import {
  type OperationResult,
  type Packet,
  defineOperation,
} from '../../../core/operations/operation.ts';
import { Failure } from '../../../core/values/failure.ts';
import type { StaticInput, StaticOutput } from '../../../core/values/json/static.ts';
import { contentPacket } from '../../rules/operations/get-content.ts';
import { nodeProperties, nodeProtocol, requireNode } from './access.ts';
import { rowLogPart } from '../log/open-row-log.ts';

/** Rows of the log, and about how many characters of them, in one packet to a node … */
const feedRowsAtOnce = { rows: 500, characters: 2 ** 20 };

/** … and in one piece of a copy. */
const copyRowsAtOnce = { rows: 2_000, characters: 2 ** 20 };

const text = { type: 'string' } as const;
const seq = { type: 'integer', minimum: 0 } as const;

const afterSchema = {
  type: 'object',
  required: ['node', 'log', 'seq', 'txn'],
  // A node may be of a later version than its centre.
  additionalProperties: true,
  properties: {
    ...nodeProperties,
    log: { ...text, description: 'The id of the log, as log.end has it.' },
    seq: { ...seq, description: 'The newest change that the node has; 0 for none.' },
    txn: { ...text, description: 'The transaction of that change; empty for none.' },
  },
} as const;

/** A request for the rows after a place in the log. */
type AfterInput = StaticInput<typeof afterSchema>;

const endSchema = {
  title: 'LogEnd',
  type: 'object',
  required: ['log', 'seq', 'txn', 'protocol', 'version'],
  properties: {
    log: { ...text, description: 'The id of the log; a copy of it has the same.' },
    seq: { ...seq, description: 'The newest change.' },
    txn: { ...text, description: 'The transaction of that change.' },
    generation: {
      ...seq,
      description: 'How often a promoted copy has replaced the log; 0 if never.',
    },
    protocol: { ...seq, description: 'The version of the protocol of nodes.' },
    version: { ...text, description: 'The version of the server.' },
  },
} as const;

interface LogParts {
  readonly store: Store;
  readonly status: { readonly version: string };
}

/** log.end: the identity and the end of the log, for a node that is about to copy it. */
export const readLogEnd = defineOperation({
  name: 'svc1.log.end',
  scope: 'follow',
  effect: 'reads',
  summary: 'The id and the newest change of the log, for a node that copies it.',
  output: endSchema,
  input: {
    type: 'object',
    required: ['node'],
    additionalProperties: true,
    properties: nodeProperties,
  },
  run:
    ({ store, status }: LogParts) =>
    (v, call) => {
      requireNode(store, v, call);
      return { kind: 'data', data: endOf(store, status.version) };
    },
});

/**
 * log.rows: the rows after a place up to the end of the log at the time of the request, as NDJSON.
 * Refuses with `conflict` if this log does not have the place.
 */
export const readLogRows = defineOperation({
  name: 'svc1.log.rows',
  scope: 'follow',
  effect: 'reads',
  summary: 'The rows of the log after one that a node has, as NDJSON.',
  failures: ['conflict'],
  replies: { 200: 'The rows, one a line.', default: 'A failure.' },
  output: contentPacket,
  input: afterSchema,
  run:
    ({ store }: LogParts) =>
    async (v, call): Promise<OperationResult> => {
      requireNode(store, v, call);
      await requirePlace(store, v);
      const stream = Readable.from(lines(store, v.seq, store.seq()), {
        objectMode: false,
        highWaterMark: copyRowsAtOnce.characters,
      });
      return {
        kind: 'reply',
        reply: {
          status: 200,
          fields: ['Content-Type', 'application/x-ndjson', 'Cache-Control', 'no-store'],
          body: { kind: 'stream', stream, bytesLength: undefined },
          source: 'svc1',
        },
      };
    },
});

/**
 * log.follow: the end of the log, and then its rows after a place, in the order of seq, as they are
 * committed. Refuses with `conflict` if this log does not have the place.
 */
export const followLog = defineOperation({
  name: 'svc1.log.follow',
  scope: 'follow',
  effect: 'streams',
  summary: 'The rows of the log as they are committed, for a node that keeps a copy.',
  failures: ['conflict'],
  input: afterSchema,
  output: endSchema,
  packets: {
    r: 'svc1.log.change',
    data: {
      title: 'LogRows',
      type: 'object',
      required: ['rows', 'newest'],
      properties: {
        rows: {
          type: 'array',
          items: text,
          description: 'Consecutive rows, each as JSON. A transaction may continue in the next.',
        },
        newest: { ...seq, description: 'The newest change of the log at that time.' },
      },
    },
  },
  run:
    ({ store, status }: LogParts) =>
    async (v, call) => {
      requireNode(store, v, call);
      await requirePlace(store, v);
      return {
        kind: 'stream',
        data: endOf(store, status.version),
        stream: (signal) => packets(store, v.seq, signal),
      };
    },
});

function endOf(store: Store, version: string): StaticOutput<typeof endSchema> {
  const rowLog = store.part(rowLogPart);
  const { generation } = rowLog.identity();
  return { ...rowLog.end(), generation, protocol: nodeProtocol, version };
}

async function requirePlace(store: Store, { log, seq: after, txn }: AfterInput): Promise<void> {
  const rowLog = store.part(rowLogPart);
  if (log === rowLog.identity().id) await catchUpTo(store, after);
  if (rowLog.has({ log, seq: after, txn })) return;
  throw new Failure(
    'conflict',
    'The log of the node is not a copy of this log, or has changes that this log lacks: ' +
      'copy the log again.',
  );
}

async function* packets(
  store: Store,
  from: number,
  signal: AbortSignal,
): AsyncGenerator<Packet, void, undefined> {
  for (let after = from; ;) {
    await store.waitForRows(after, signal);
    if (signal.aborted) return;
    const rows = store.part(rowLogPart).rows(after, feedRowsAtOnce);
    after += rows.length;
    yield { r: 'svc1.log.change', data: { rows, newest: store.seq() } };
  }
}

function* lines(store: Store, from: number, upTo: number): Iterable<string> {
  const rowLog = store.part(rowLogPart);
  for (let after = from; after < upTo;) {
    const { rows: most, characters } = copyRowsAtOnce;
    const rows = rowLog.rows(after, { rows: Math.min(most, upTo - after), characters });
    after += rows.length;
    yield `${rows.join('\n')}\n`;
  }
}
