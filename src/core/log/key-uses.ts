import type { Databases } from './databases.ts';
import { keyOf } from './encoding.ts';
import type { WriteQueue } from './write/write-queue.ts';

/**
 * When each key was used last at this node. It is no part of the log
 * (docs/design/failures.md#last-use-of-keys).
 */
export interface KeyUses {
  /** Id of a key → the time of its last use: ISO 8601, UTC. */
  all(): ReadonlyMap<string, string>;
  /** How often the token of a breadcrumb was used, by its id; 0 for no use. */
  count(id: string): number;
  /**
   * Stores times, in milliseconds since 1970, by the ids of keys, without those that are older
   * than a stored one and those of keys that do not exist; and adds to the counts. Rejects as
   * Store.commit does.
   */
  put(uses: ReadonlyMap<string, number>, counts?: ReadonlyMap<string, number>): Promise<void>;
}

/** Makes the KeyUses of the databases, which all workers share. */
export function createKeyUses(
  { meta, key }: Pick<Databases, 'meta' | 'key'>,
  { queue }: { readonly queue: WriteQueue },
): KeyUses {
  return {
    all() {
      const entries = meta.getRange({ start: prefix, end: `${prefix}~` });
      return new Map([...entries].map(({ key: name, value }) => [idOf(String(name)), value]));
    },
    count: (id) => countOf(meta, id),
    put: (uses, counts = new Map()) =>
      queue.write(() => {
        const newer = [...uses]
          .map(([id, ms]) => [id, new Date(ms).toISOString()] as const)
          .filter(
            ([id, time]) => key.doesExist(keyOf(id)) && !(time <= (meta.get(nameOf(id)) ?? '')),
          );
        const sums = [...counts]
          .filter(([id]) => key.doesExist(keyOf(id)))
          .map(([id, added]) => [id, countOf(meta, id) + added] as const);
        return () => {
          for (const [id, time] of newer) meta.putSync(nameOf(id), time);
          for (const [id, sum] of sums) meta.putSync(countNameOf(id), String(sum));
          return { result: undefined, bytes: 0 };
        };
      }),
  };
}

/**
 * Removes the last use of a key that is revoked, and the count of its uses. The caller runs it in a
 * write transaction.
 */
export function removeKeyUse({ meta }: Pick<Databases, 'meta'>, id: string): void {
  meta.removeSync(nameOf(id));
  meta.removeSync(countNameOf(id));
}

/** Whether an entry of the database `meta` has the last use of a key, or the count of its uses. */
export function isKeyUse(name: string): boolean {
  return name.startsWith(prefix) || name.startsWith(countPrefix);
}

const prefix = 'used ';
const countPrefix = 'uses ';

function countOf(meta: Databases['meta'], id: string): number {
  return Number(meta.get(countNameOf(id)) ?? 0);
}

function countNameOf(id: string): string {
  return `${countPrefix}${id}`;
}

function nameOf(id: string): string {
  return `${prefix}${id}`;
}

function idOf(name: string): string {
  return name.slice(prefix.length);
}
