import type { JsonObject } from '../model/json.ts';
import type { StoreCounts } from '../store/store.ts';
import type { Handler } from './operation.ts';

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

/** What server.status reports. */
export interface StatusOperations {
  readonly version: string;
  /** ISO 8601, UTC. */
  readonly started: string;
  readonly counts: () => StoreCounts;
  readonly configuration: () => ConfigurationState;
}

const time = { type: 'string', format: 'date-time' } as const;
const integer = { type: 'integer' } as const;

const statusSchema: JsonObject = {
  title: 'ServerStatus',
  type: 'object',
  required: ['version', 'started', 'seq', 'configuration', 'counts'],
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
export function serverStatus(parts: StatusOperations): Handler<object> {
  return {
    summary: 'Version, position of the log, state of the configuration, counts.',
    output: statusSchema,
    input: { type: 'object' },
    run: () => {
      const { seq, ...counts } = parts.counts();
      return {
        kind: 'data',
        data: {
          version: parts.version,
          started: parts.started,
          seq,
          configuration: parts.configuration(),
          counts,
        },
      };
    },
  };
}
