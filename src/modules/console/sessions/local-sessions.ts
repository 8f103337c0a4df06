import type { ApiKey } from '../../../core/values/key.ts';
import type { Databases } from '../../../core/log/databases.ts';
import { storedJson } from '../../../core/log/encoding.ts';
import type { WriteQueue } from '../../../core/log/write/write-queue.ts';

/**
 * The sessions of a node that follows a centre. Its log is a copy, so they are in another database
 * (docs/design/console.md#sessions-at-a-follower).
 */
export interface LocalSessions {
  all(): readonly ApiKey[];
  /**
   * Replaces them by those that `decide` returns; resolves with its result once that is durable.
   * Rejects with what `decide` threw.
   */
  change<T>(decide: () => { readonly sessions: readonly ApiKey[]; readonly result: T }): Promise<T>;
}

/** Makes the LocalSessions of the databases, which all workers share. */
export function createLocalSessions(
  { meta }: Pick<Databases, 'meta'>,
  { queue }: { readonly queue: WriteQueue },
): LocalSessions {
  return {
    all() {
      const text = meta.get('sessions');
      return text === undefined ? [] : (storedJson(text) as readonly ApiKey[]);
    },
    change: (decide) =>
      queue.write(() => {
        const { sessions, result } = decide();
        return () => {
          const text = JSON.stringify(sessions);
          meta.putSync('sessions', text);
          return { result, bytes: text.length };
        };
      }),
  };
}
