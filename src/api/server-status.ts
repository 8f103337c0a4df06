import type { HostState } from '../acme/folder.ts';
import type { JsonObject } from '../model/json.ts';
import type { MemoryUse } from '../observability/memory-use.ts';
import type { StoreCounts } from '../store/store.ts';
import { defineOperation } from './operation.ts';

/**
 * How the configuration stands: the one in force, and what is wrong with the file if it has become
 * unusable.
 */
export interface ConfigurationState {
  /** ISO 8601, UTC: when the configuration in force was read. */
  readonly since: string;
  /** `current`, or `broken` when the file has changed and cannot be used. */
  readonly state: 'current' | 'broken';
  /** Settings that have changed in the file and need a restart. */
  readonly restart_needed: readonly string[];
  readonly problems: readonly { readonly line: number; readonly message: string }[];
}

/** How a certificate stands. */
export interface CertificateState {
  /** The section of the ini file. */
  readonly section: string;
  /** The names and addresses that the certificate in use is for. */
  readonly names: readonly string[];
  /** Distinguished name of who issued it. */
  readonly issuer: string | null;
  /** ISO 8601, UTC. */
  readonly valid_until: string | null;
  /** Why what is in the files now is not used; null where it is. */
  readonly problem: string | null;
  /** How it stands with the ACME server; null for a certificate that is not got from one. */
  readonly acme: HostState | null;
}

/** How webhooks stand. */
export interface WebhookState {
  /** Hooks that are paused, … */
  readonly paused: number;
  /** … of these, the ones in which a field is not valid that decides what they get. */
  readonly waiting: number;
  /** Hooks for a place where no known node executes them. */
  readonly without_node: number;
  /** The address that deliveries come from, where the ini file says it. */
  readonly local_address: string | null;
}

/** The parts of a server's status. */
interface StatusParts {
  readonly version: string;
  /** ISO 8601, UTC. */
  readonly started: string;
  readonly counts: () => StoreCounts;
  readonly webhooks: () => WebhookState;
  readonly configuration: () => ConfigurationState;
  readonly certificates: () => Promise<readonly CertificateState[]>;
  /** The memory of the process that answers: with several workers, of one of them. */
  readonly memory: () => MemoryUse;
}

const time = { type: 'string', format: 'date-time' } as const;
const integer = { type: 'integer' } as const;

const certificateSchema: JsonObject = {
  type: 'object',
  required: ['section', 'names', 'issuer', 'valid_until', 'problem', 'acme'],
  properties: {
    section: { type: 'string', description: 'The section of the ini file.' },
    names: { type: 'array', items: { type: 'string' } },
    issuer: { type: ['string', 'null'] },
    valid_until: { type: ['string', 'null'], format: 'date-time' },
    problem: {
      type: ['string', 'null'],
      description: 'Why what is in the files now is not used; null where it is.',
    },
    acme: {
      type: ['object', 'null'],
      description: 'How it stands with the ACME server that the certificate is got from.',
      required: ['state', 'since', 'failures', 'next', 'error'],
      properties: {
        state: { type: 'string', enum: ['obtaining', 'valid', 'failed'] },
        since: time,
        failures: { ...integer, description: 'Tries in a row that failed.' },
        next: {
          type: ['string', 'null'],
          format: 'date-time',
          description: 'When it is tried again, or renewed.',
        },
        error: { type: ['string', 'null'] },
      },
    },
  },
};

const statusSchema: JsonObject = {
  title: 'ServerStatus',
  type: 'object',
  required: [
    'version',
    'started',
    'seq',
    'configuration',
    'certificates',
    'counts',
    'webhooks',
    'memory',
  ],
  properties: {
    version: { type: 'string' },
    started: time,
    seq: { ...integer, description: 'Position of the newest change in the log.' },
    configuration: {
      type: 'object',
      required: ['since', 'state', 'restart_needed', 'problems'],
      properties: {
        since: { ...time, description: 'When the configuration in force was read.' },
        state: {
          type: 'string',
          enum: ['current', 'broken'],
          description: 'broken when the ini file has changed and cannot be used.',
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
            required: ['line', 'message'],
            properties: { line: integer, message: { type: 'string' } },
          },
        },
      },
    },
    certificates: { type: 'array', items: certificateSchema },
    memory: {
      type: 'object',
      description: 'Memory of the process that answers, and what each of its caches holds.',
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
    webhooks: {
      type: 'object',
      required: ['paused', 'waiting', 'without_node', 'local_address'],
      properties: {
        paused: integer,
        waiting: {
          ...integer,
          description: 'Of the paused ones, those with a value in _unknowns_ to be corrected.',
        },
        without_node: {
          ...integer,
          description: 'Hooks for a place where no known node executes them.',
        },
        local_address: {
          type: ['string', 'null'],
          description: 'The address that deliveries come from; null for what the system chooses.',
        },
      },
    },
    counts: {
      type: 'object',
      required: ['rules', 'keys', 'hooks', 'bytes'],
      properties: {
        rules: integer,
        keys: integer,
        hooks: integer,
        bytes: { ...integer, description: 'Size of the data file.' },
      },
    },
  },
};

/** server.status: version, position of the log, state of the configuration, counts. */
export const serverStatus = defineOperation<{ readonly status: StatusParts }, object>({
  name: 'svc1.server.status',
  scope: 'read',
  effect: 'reads',
  summary: 'Version, position of the log, state of the configuration, counts.',
  output: statusSchema,
  input: { type: 'object' },
  run:
    ({ status }) =>
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
          webhooks: status.webhooks(),
          memory: status.memory(),
        },
      };
    },
});
