import type { Databases } from '../databases.ts';
import type { SharedPut } from './entry.ts';
import type { ClusterTask, DeliveryWriter } from './shared-log.ts';

const valuePrefix = 'value ';

/** A change of a value: its key and its text; null removes it. */
export type ValueChange = readonly [key: string, text: string | null];

/** Reads the values of a data folder. */
export interface ReadValues {
  /** Undefined for none. */
  get(key: string): string | undefined;
  /** Keys and texts, in the order of the keys. */
  withPrefix(prefix: string): readonly (readonly [key: string, text: string])[];
}

/**
 * Texts with names that the nodes of a cluster share besides the log
 * (docs/design/cluster.md#values-besides-the-log).
 */
export interface Values extends ReadValues {
  /**
   * Writes what `decide` returns, which is called with the newest values, and again if another node
   * was faster; it must not throw. With a task, it writes only while it is this node's turn.
   * Rejects as Store.commit and ClusterTask.write.
   */
  write(
    decide: (values: ReadValues) => readonly ValueChange[],
    task?: Pick<ClusterTask, 'write'>,
  ): Promise<void>;
  /** Calls a listener after values may have changed; the returned function ends that. */
  onChange(listener: () => void): () => void;
}

/** Makes the Values of a node; `listeners` gets those of `onChange`. */
export function createSharedValues(
  databases: Databases,
  writer: DeliveryWriter,
  listeners: Set<() => void>,
): Values {
  const read = valuesOf(databases);
  // Another process may have written since the last read.
  const refresh = (): void => {
    databases.environment.resetReadTxn();
  };
  return {
    get(key) {
      refresh();
      return read.get(key);
    },
    withPrefix(prefix) {
      refresh();
      return read.withPrefix(prefix);
    },
    async write(decide, task) {
      const put = ({ delivery }: Pick<Databases, 'delivery'>): void => {
        for (const [key, text] of decide(read)) {
          if (text === null) delivery.removeSync(valuePrefix + key);
          else delivery.putSync(valuePrefix + key, text);
        }
      };
      await (task === undefined ? writer.write(() => put) : task.write(put));
    },
    onChange(listener) {
      listeners.add(listener);
      return () => {
        listeners.delete(listener);
      };
    },
  };
}

/** The values of a data folder, also of one that has left its cluster. */
export function valuesOf({ delivery }: Pick<Databases, 'delivery'>): ReadValues {
  return {
    get: (key) => delivery.get(valuePrefix + key),
    withPrefix(prefix) {
      const start = valuePrefix + prefix;
      // U+FFFF sorts after all characters of keys.
      return [...delivery.getRange({ start, end: `${start}\uffff` })].map(
        ({ key, value }) => [key.slice(valuePrefix.length), value] as const,
      );
    },
  };
}

/** Whether puts have values, and not only what concerns deliveries and tasks. */
export function hasValues(puts: readonly SharedPut[]): boolean {
  return puts.some(([name, key]) => name === 'delivery' && String(key).startsWith(valuePrefix));
}
