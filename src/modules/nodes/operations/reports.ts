import type { StaticInput } from '../../../core/values/json/static.ts';
import type { Node } from '../../webhooks/hook.ts';
import type { Log } from '../../../core/report/log.ts';
import { type NodeState, nodesPart } from '../log/node-states.ts';
import type { Store } from '../../../core/log/store.ts';
import { defineOperation } from '../../../core/operations/operation.ts';
import { nodeProperties, nodeProtocol, requireNode } from './access.ts';

interface ReportParts {
  readonly store: Store;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly node: Node;
  readonly log: Log;
}

/** The counters about which the log has a warning, and the nodes that are two machines. */
const warned = new Set<string>();
/** The processes that have reported for a node: the latest one, and the one before. */
const reporters = new Map<string, readonly [string, string | undefined]>();

const deliversAll =
  'A counter follows this server, whose role is `all`, so both deliver the hooks of counters. ' +
  'Set `role = central` in [node].';

/**
 * Whether the process that reports for a node had been replaced by another one: then two run at the
 * same time.
 */
function isReturning({ node, process }: Pick<ReportInput, 'node' | 'process'>): boolean {
  const [latest, before] = reporters.get(node) ?? [];
  if (process === undefined || process === latest) return false;
  reporters.set(node, [process, latest]);
  return process === before;
}

function twoMachines(node: string): string {
  return (
    `Two machines run as the node ${node}, each with a copy of its data folder or its key, and ` +
    'both deliver its webhooks: stop one, and give it a name, a key and an empty folder of its own.'
  );
}

const text = { type: 'string' } as const;
const count = { type: 'integer', minimum: 0 } as const;

const reportInput = {
  type: 'object',
  required: ['node', 'role', 'version', 'seq', 'now', 'waiting', 'refused'],
  // A node may be of a later version than its centre.
  additionalProperties: true,
  properties: {
    ...nodeProperties,
    role: { ...text, maxLength: 32 },
    place: { ...text, maxLength: 253, nullable: true },
    version: { ...text, maxLength: 64 },
    process: {
      ...{ ...text, maxLength: 64, nullable: true },
      description: 'An id of the process: another one after each start.',
    },
    seq: { ...count, description: 'The newest change that the node has.' },
    now: { ...count, description: 'Its clock, in milliseconds since 1970.' },
    waiting: { ...count, description: 'Entries of its outbox that wait.' },
    refused: { ...count, description: 'Entries of its outbox that were refused.' },
    deliveries: {
      type: 'object',
      nullable: true,
      required: [],
      additionalProperties: true,
      description: 'What it has delivered, by the id of the hook.',
    },
  },
} as const;

type ReportInput = StaticInput<typeof reportInput>;

/** node.report: stores the report of a node about itself, for node.list. */
export const reportNode = defineOperation({
  name: 'svc1.node.report',
  scope: 'follow',
  effect: 'writes',
  summary: 'The state of a node that follows the log, which node.list shows.',
  input: reportInput,
  output: {
    title: 'NodeReported',
    type: 'object',
    required: ['seq'],
    properties: { seq: { ...count, description: 'The newest change of the centre.' } },
  },
  run:
    ({ store, now, node: own, log }: ReportParts) =>
    async (v, call) => {
      requireNode(store, v, call);
      if (own.role === 'all' && v.role === 'counter' && !warned.has(v.node)) {
        warned.add(v.node);
        log.warn({ node: v.node }, deliversAll);
      }
      const problem = isReturning(v) ? twoMachines(v.node) : undefined;
      if (problem !== undefined && !warned.has(problem)) {
        warned.add(problem);
        log.warn({ node: v.node }, problem);
      }
      const { node: name, role, place, version, seq, waiting, refused, deliveries } = v;
      await store.part(nodesPart).put({
        ...{ name, role, version, seq, outbox: { waiting, refused } },
        ...(place !== undefined && { place }),
        ...(deliveries !== undefined && { deliveries }),
        ...(problem !== undefined && { problem }),
        protocol: v.protocol ?? nodeProtocol,
        clock_offset_ms: v.now - now(),
        last_contact: new Date(now()).toISOString(),
        silent: false,
        ...(store.shared !== undefined && { via: own.name }),
      });
      return { kind: 'data', data: { seq: store.seq() } };
    },
});

const nodeSchema = {
  title: 'Node',
  type: 'object',
  required: ['name', 'role', 'version', 'seq', 'lag', 'outbox', 'clock_offset_ms', 'last_contact'],
  properties: {
    name: text,
    role: text,
    place: text,
    version: text,
    protocol: count,
    seq: { ...count, description: 'The newest change that it had.' },
    lag: { ...count, description: 'Changes that it lacked at its last report.' },
    outbox: {
      type: 'object',
      required: ['waiting', 'refused'],
      properties: { waiting: count, refused: count },
    },
    clock_offset_ms: { type: 'integer', description: 'Its clock less that of the centre.' },
    last_contact: { ...text, format: 'date-time' },
    silent: { type: 'boolean', description: 'Whether an event has reported its silence.' },
    deliveries: { type: 'object', description: 'What it has delivered, by the id of the hook.' },
    problem: { ...text, description: 'What is wrong with it, and what to do.' },
    via: { ...text, description: 'The machine of the cluster that a follower reports to.' },
    cluster: {
      type: 'object',
      description: 'For the machines of a cluster.',
      required: ['position', 'tasks'],
      properties: {
        position: { ...count, description: 'How far it had applied the log of the cluster.' },
        tasks: {
          type: 'array',
          items: text,
          description: 'What it does for the whole cluster, such as `webhooks`.',
        },
      },
    },
  },
} as const;

/** node.list: the last report of each node that follows this one or is in its cluster. */
export const listNodes = defineOperation({
  name: 'svc1.node.list',
  scope: 'read',
  effect: 'reads',
  summary:
    'The machines of the cluster, and the replicas and counters that follow it or this server, ' +
    'with their last reports.',
  input: { type: 'object' },
  output: {
    title: 'NodeList',
    type: 'object',
    required: ['rows', 'seq'],
    properties: {
      rows: { type: 'array', items: nodeSchema },
      seq: { ...count, description: 'The newest change of the log.' },
    },
  },
  run:
    ({ store }: ReportParts) =>
    () => {
      const seq = store.seq();
      const tasks = store.shared?.tasks() ?? [];
      const rows = store
        .part(nodesPart)
        .all()
        .map(({ cluster, ...node }) => {
          const lag = lagOf(node, seq);
          if (cluster === undefined) return { ...node, lag };
          const { member, position } = cluster;
          const its = tasks.filter((one) => one.member === member).map(({ task }) => task);
          return { ...node, lag, cluster: { position, tasks: its } };
        });
      return { kind: 'data', data: { rows, seq } };
    },
});

function lagOf({ seq: has }: Pick<NodeState, 'seq'>, seq: number): number {
  return Math.max(0, seq - has);
}
