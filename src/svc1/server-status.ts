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

/** server.status: version, position of the log, state of the configuration, counts. */
export function serverStatus(parts: StatusOperations): Handler<object> {
  return {
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
