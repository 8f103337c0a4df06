import type { TaskState } from '../../core/background/tasks.ts';
import type { ConfigProblem } from '../../core/config/problem.ts';
import type { SharedFilesState } from '../../core/log/shared/shared-log.ts';
import type { Reads, SharedPart, Store, StoreCounts } from '../../core/log/store.ts';
import type { IndexBuild } from '../tables/log/reads.ts';
import { defineOperation } from '../../core/operations/operation.ts';
import type { MemoryUse } from '../../core/report/memory-use.ts';
import { Failure } from '../../core/values/failure.ts';
import type { HostState } from '../acme/acme-store.ts';
import type { TableHostState } from '../hosts/host-follower.ts';
import type { RowCheckProgress } from '../tables/operations/row-checks.ts';
import {
  type Hook,
  type Node,
  isDelivered,
  isExecutedOn,
  waitingFields,
} from '../webhooks/hook.ts';
import { knownNodes } from '../webhooks/operations/hook-placement.ts';
import { nodesPart } from '../nodes/log/node-states.ts';
import { outboxPart } from '../nodes/log/outbox-entries.ts';
import { storedHooks } from '../webhooks/log/family.ts';

/** The state of the configuration in use, and the problems of an ini file that cannot be used. */
export interface ConfigurationState {
  /** When the configuration in use was read: ISO 8601, UTC. */
  readonly since: string;
  /** `broken` if the ini file has changed and cannot be used. */
  readonly state: 'current' | 'broken';
  /** Settings that have changed in the file and need a restart. */
  readonly restart_needed: readonly string[];
  readonly problems: readonly ConfigProblem[];
}

/** The state of a certificate. */
export interface CertificateState {
  /** The section of the ini file, or `tls: acme_on_demand` and the name. */
  readonly section: string;
  /** The names and addresses of the certificate in use. */
  readonly names: readonly string[];
  /** Distinguished name of its issuer. */
  readonly issuer: string | null;
  /** ISO 8601, UTC. */
  readonly valid_from: string | null;
  readonly valid_until: string | null;
  /** Why the server does not use the present files; null if it does. */
  readonly problem: string | null;
  /** The state at the ACME server; null for a certificate that does not come from one. */
  readonly acme: HostState | null;
}

/** Counts of keys by their ends: see keyState. */
type KeyEnds = Readonly<Record<'ending' | 'ended', number>>;

/** Counts of webhooks. */
interface WebhookState {
  /** Paused hooks. */
  readonly paused: number;
  /** Hooks that are paused because a field is not valid. */
  readonly waiting: number;
  /** Hooks that no known node executes. */
  readonly without_node: number;
  /** The address that deliveries come from, if the ini file sets it. */
  readonly local_address: string | null;
}

/** The role of this node, and its connection to its centre. */
interface NodeStatus {
  readonly role: string;
  readonly name: string;
  /** Null for a node without a centre. */
  readonly central: {
    readonly url: string;
    readonly connected: boolean;
    readonly since?: string;
    readonly problem?: string;
    readonly outbox: {
      readonly waiting: number;
      readonly refused: number;
      readonly bytes: number;
      readonly entries_max: number;
      readonly bytes_max: number;
    };
  } | null;
  /** Null for a machine that is no node of a cluster. */
  readonly cluster: {
    readonly connected: boolean;
    readonly problem?: string;
    readonly position: number;
    /** Null before the first file, and while the servers do not answer. */
    readonly files: SharedFilesState | null;
  } | null;
}

/**
 * Makes the function that describes this node; in a cluster, it asks a server for the state of the
 * files.
 */
export function createNodeStatus(
  { part, shared, sharedPlace }: Pick<Store, 'part' | 'shared' | 'sharedPlace'>,
  { role, name, central }: Node & { readonly central: string | undefined },
): () => Promise<NodeStatus> {
  return async () => {
    const outbox = part(outboxPart);
    const link = part(nodesPart).link() ?? { connected: false };
    const { entries, bytes } = outbox.max;
    const counts = { ...outbox.counts(), entries_max: entries, bytes_max: bytes };
    const state = central === undefined ? null : { url: central, ...link, outbox: counts };
    return { role, name, central: state, cluster: await clusterStatus() };
  };

  async function clusterStatus(): Promise<NodeStatus['cluster']> {
    if (shared === undefined) return null;
    const { isConnected: connected, problem } = shared.state();
    const position = sharedPlace()?.position ?? 0;
    const files = connected ? await filesOf(shared) : null;
    return { connected, ...(problem !== undefined && { problem }), position, files };
  }
}

/** The state of the files, or null: a status has to be there also while the servers are not. */
async function filesOf({ files }: SharedPart): Promise<SharedFilesState | null> {
  try {
    return (await files.state()) ?? null;
  } catch (error) {
    if (error instanceof Failure) return null;
    throw error;
  }
}

const filesSchema = {
  type: ['object', 'null'],
  description:
    'The files of assets that the nodes share; null before the first one, and while the servers ' +
    'do not answer.',
  required: ['stream', 'messages', 'bytes', 'copies', 'log_copies', 'servers'],
  properties: {
    stream: { type: 'string', description: 'The name of the stream.' },
    messages: { type: 'integer' },
    bytes: { type: 'integer', description: 'The bytes of one copy.' },
    copies: { type: 'integer', description: 'How many servers should have a copy.' },
    log_copies: { type: 'integer', description: 'How many should have one of the log.' },
    servers: {
      type: 'array',
      items: {
        type: 'object',
        required: ['name', 'role', 'state', 'lag'],
        properties: {
          name: { type: 'string' },
          role: { type: 'string', enum: ['leader', 'replica'] },
          state: { type: 'string', enum: ['current', 'behind', 'offline'] },
          lag: { type: 'integer', description: 'Messages that it has not stored yet.' },
        },
      },
    },
    problem: { type: 'string', description: 'What is wrong with the copies, and what to do.' },
  },
} as const;

const nodeSchema = {
  type: 'object',
  required: ['role', 'name', 'central', 'cluster'],
  properties: {
    cluster: {
      type: ['object', 'null'],
      description: 'The log that this node shares with others; null without a cluster.',
      required: ['connected', 'position', 'files'],
      properties: {
        connected: { type: 'boolean' },
        problem: { type: 'string', description: 'Why it is not connected.' },
        position: { type: 'integer', description: 'How far the node has applied the log.' },
        files: filesSchema,
      },
    },
    role: { type: 'string' },
    name: { type: 'string' },
    central: {
      type: ['object', 'null'],
      description: 'The node whose log this one follows; null for a node with a log of its own.',
      required: ['url', 'connected', 'outbox'],
      properties: {
        url: { type: 'string' },
        connected: { type: 'boolean' },
        since: { type: 'string', format: 'date-time' },
        problem: { type: 'string', description: 'Why it is not connected.' },
        outbox: {
          type: 'object',
          description: 'Entries that wait for the centre, and that it has refused.',
          required: ['waiting', 'refused', 'bytes', 'entries_max', 'bytes_max'],
          properties: {
            waiting: { type: 'integer' },
            refused: { type: 'integer' },
            bytes: { type: 'integer', description: 'Bytes of both.' },
            entries_max: { type: 'integer', description: 'The most of both: outbox_entries.' },
            bytes_max: { type: 'integer', description: 'The most bytes of both: outbox_size.' },
          },
        },
      },
    },
  },
} as const;

/** The parts of a server's status. */
interface StatusParts {
  readonly version: string;
  /** ISO 8601, UTC. */
  readonly started: string;
  readonly counts: () => StoreCounts;
  readonly indexes: () => readonly IndexBuild[];
  readonly keys: () => KeyEnds;
  readonly webhooks: () => WebhookState;
  readonly configuration: () => ConfigurationState;
  readonly node: () => Promise<NodeStatus>;
  readonly certificates: () => Promise<readonly CertificateState[]>;
  /** The data hosts of tables; of one process, if several share the ports. */
  readonly hosts: () => readonly TableHostState[];
  /**
   * Tables with a running check of their rows after a change of the schema; of one process, if
   * several share the ports.
   */
  readonly rowChecks: () => readonly RowCheckProgress[];
  /** The work in the background; of one process, if several share the ports. */
  readonly tasks: () => Promise<readonly TaskState[]>;
  /** The memory of the process that answers: with several workers, of one of them. */
  readonly memory: () => MemoryUse;
}

/** Makes the function that counts webhooks by state; it reads them again only after a change. */
export function createWebhookState(
  store: Pick<Reads, 'of'> & Pick<Store, 'part'>,
  {
    node,
    hasCentre,
    localAddress,
  }: {
    readonly node: Node;
    /** Only the centre knows all nodes. */
    readonly hasCentre: boolean;
    readonly localAddress: string | undefined;
  },
): () => WebhookState {
  let known: HookStates | undefined;
  return () => {
    const stamp = store.of(storedHooks).hooksStamp();
    if (known === undefined || known.stamp !== stamp) known = readStates(store, node);
    const { paused, waiting, elsewhere } = known;
    const mayLack = elsewhere.length > 0 && !hasCentre;
    const nodes = mayLack ? knownNodes(node, store) : [];
    const lacking = mayLack
      ? elsewhere.filter((hook) => !nodes.some((one) => isExecutedOn(hook, one)))
      : [];
    return {
      ...{ paused, waiting, without_node: lacking.length },
      local_address: localAddress ?? null,
    };
  };
}

interface HookStates extends Pick<WebhookState, 'paused' | 'waiting'> {
  readonly stamp: string | undefined;
  /** The hooks that this node does not execute. */
  readonly elsewhere: readonly Hook[];
}

function readStates(store: Pick<Reads, 'of'>, node: Node): HookStates {
  const stamp = store.of(storedHooks).hooksStamp();
  const hooks = [...store.of(storedHooks).hooksAfter('')].map(({ hook }) => hook);
  return {
    stamp,
    paused: hooks.filter((hook) => !isDelivered(hook)).length,
    waiting: hooks.filter((hook) => waitingFields(hook).length > 0).length,
    elsewhere: hooks.filter((hook) => !isExecutedOn(hook, node)),
  };
}

const time = { type: 'string', format: 'date-time' } as const;
const integer = { type: 'integer' } as const;

const certificateSchema = {
  type: 'object',
  required: ['section', 'names', 'issuer', 'valid_from', 'valid_until', 'problem', 'acme'],
  properties: {
    section: {
      type: 'string',
      description: 'The section of the ini file, or `tls: acme_on_demand` and the name.',
    },
    names: { type: 'array', items: { type: 'string' } },
    issuer: { type: ['string', 'null'] },
    valid_from: { type: ['string', 'null'], format: 'date-time' },
    valid_until: { type: ['string', 'null'], format: 'date-time' },
    problem: {
      type: ['string', 'null'],
      description: 'Why the server does not use the present files; null if it does.',
    },
    acme: {
      type: ['object', 'null'],
      description: 'The state at the ACME server that issues the certificate.',
      required: ['state', 'since', 'failures', 'next', 'error'],
      properties: {
        state: { type: 'string', enum: ['obtaining', 'valid', 'failed'] },
        since: time,
        failures: { ...integer, description: 'Number of failed orders in a row.' },
        next: {
          type: ['string', 'null'],
          format: 'date-time',
          description: 'When the server orders it again.',
        },
        error: { type: ['string', 'null'] },
        node: { type: 'string', description: 'In a cluster, the machine that has ordered last.' },
      },
    },
  },
} as const;

const statusSchema = {
  title: 'ServerStatus',
  type: 'object',
  required: [
    'version',
    'started',
    'seq',
    'configuration',
    'certificates',
    'counts',
    'indexes',
    'hosts',
    'row_checks',
    'tasks',
    'keys',
    'webhooks',
    'memory',
    'node',
  ],
  properties: {
    version: { type: 'string' },
    started: time,
    seq: { ...integer, description: 'Position of the newest change in the log.' },
    configuration: {
      type: 'object',
      required: ['since', 'state', 'restart_needed', 'problems'],
      properties: {
        since: { ...time, description: 'When the configuration in use was read.' },
        state: {
          type: 'string',
          enum: ['current', 'broken'],
          description: 'broken if the ini file has changed and cannot be used.',
        },
        restart_needed: {
          type: 'array',
          items: { type: 'string' },
          description: 'Settings that have changed in the file and need a restart.',
        },
        problems: {
          type: 'array',
          items: {
            type: 'object',
            required: ['file', 'line', 'message'],
            properties: { file: { type: 'string' }, line: integer, message: { type: 'string' } },
          },
        },
      },
    },
    node: nodeSchema,
    certificates: { type: 'array', items: certificateSchema },
    memory: {
      type: 'object',
      description: 'Memory of the process that answers, and of each of its caches.',
      required: ['resident_bytes', 'heap_bytes', 'external_bytes', 'caches'],
      properties: {
        resident_bytes: integer,
        heap_bytes: { ...integer, description: "Used part of V8's heap." },
        external_bytes: { ...integer, description: "Buffers outside V8's heap." },
        caches: {
          type: 'array',
          items: {
            type: 'object',
            required: ['name', 'entries', 'bytes', 'bytes_max'],
            properties: {
              name: { type: 'string' },
              entries: integer,
              bytes: integer,
              bytes_max: integer,
            },
          },
        },
      },
    },
    keys: {
      type: 'object',
      required: ['ending', 'ended'],
      properties: {
        ending: { ...integer, description: 'Number of keys that end soon: key.list names them.' },
        ended: { ...integer, description: 'Number of keys whose end has passed.' },
      },
    },
    webhooks: {
      type: 'object',
      required: ['paused', 'waiting', 'without_node', 'local_address'],
      properties: {
        paused: integer,
        waiting: {
          ...integer,
          description: 'Number of hooks that are paused because a field is not valid.',
        },
        without_node: {
          ...integer,
          description: 'Number of hooks that no known node executes.',
        },
        local_address: {
          type: ['string', 'null'],
          description: 'The address that deliveries come from; null if the system chooses it.',
        },
      },
    },
    indexes: {
      type: 'array',
      description: 'Indexes of tables that the server builds; lists cannot use them yet.',
      items: {
        type: 'object',
        required: ['table', 'field', 'done', 'of'],
        properties: {
          table: { type: 'string' },
          field: { type: ['string', 'null'], description: 'null for the text search.' },
          done: { ...integer, description: 'Rows that are in it.' },
          of: { ...integer, description: 'Rows when the build began.' },
        },
      },
    },
    row_checks: {
      type: 'array',
      description: 'Tables whose rows are checked after a change of the schema.',
      items: {
        type: 'object',
        required: ['table', 'checked', 'of', 'moved'],
        properties: {
          table: { type: 'string' },
          checked: { ...integer, description: 'Rows that are checked.' },
          of: { ...integer, description: 'Rows when the check began.' },
          moved: { ...integer, description: 'Rows that were changed.' },
        },
      },
    },
    tasks: {
      type: 'array',
      description:
        'The work in the background of the process that answers. No error ends a task for good: ' +
        'it waits, and begins again.',
      items: {
        type: 'object',
        required: ['task', 'state', 'failures', 'problem', 'next'],
        properties: {
          task: { type: 'string' },
          state: { type: 'string', enum: ['running', 'waiting'] },
          failures: { ...integer, description: 'Errors in a row.' },
          problem: {
            type: ['string', 'null'],
            description: 'The last error, until the task has worked again.',
          },
          next: {
            type: ['string', 'null'],
            format: 'date-time',
            description: 'When a task that waits begins again.',
          },
        },
      },
    },
    hosts: {
      type: 'array',
      description:
        'The data hosts of tables; of several processes that share the ports, one has them.',
      items: {
        type: 'object',
        required: ['table', 'host', 'state', 'since', 'problem', 'seq'],
        properties: {
          table: { type: 'string' },
          host: { type: 'string', description: 'Its URL.' },
          state: {
            type: 'string',
            enum: ['connecting', 'connected', 'waiting', 'other_node'],
            description: 'other_node if another node of the cluster follows it.',
          },
          since: time,
          problem: { type: ['string', 'null'], description: 'Why there is no connection.' },
          seq: {
            type: ['integer', 'null'],
            description: 'The seq of the host up to which its changes have raised events.',
          },
        },
      },
    },
    counts: {
      type: 'object',
      required: ['rules', 'keys', 'hooks', 'tables', 'rows', 'bytes'],
      properties: {
        rules: integer,
        keys: integer,
        hooks: integer,
        tables: integer,
        rows: { ...integer, description: 'Rows of all tables.' },
        bytes: { ...integer, description: 'Size of the data file.' },
      },
    },
  },
} as const;

/** server.status: version, position of the log, state of the configuration, counts. */
export const serverStatus = defineOperation({
  name: 'svc1.server.status',
  scope: 'read',
  effect: 'reads',
  summary: 'Version, position of the log, state of the configuration, counts.',
  output: statusSchema,
  input: { type: 'object' },
  run:
    ({ status }: { readonly status: StatusParts }) =>
    async () => {
      const { seq, ...counts } = status.counts();
      return {
        kind: 'data',
        data: {
          version: status.version,
          started: status.started,
          seq,
          configuration: status.configuration(),
          certificates: await status.certificates(),
          counts,
          indexes: status
            .indexes()
            .map(({ table, index, done, of }) => ({ table, field: index || null, done, of })),
          hosts: status.hosts(),
          row_checks: status.rowChecks(),
          tasks: await status.tasks(),
          keys: status.keys(),
          webhooks: status.webhooks(),
          memory: status.memory(),
          node: await status.node(),
        },
      };
    },
});
