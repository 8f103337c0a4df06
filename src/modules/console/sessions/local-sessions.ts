import type { ApiKey } from '../../../core/values/key.ts';
import { storedJson } from '../../../core/log/encoding.ts';
import type { LogPart } from '../../../core/log/store.ts';

/**
 * The sessions of a node that follows a centre. Its log is a copy, so they are in another database
 * (docs/design/console.md#sessions-at-a-follower).
 */
interface LocalSessions {
  all(): readonly ApiKey[];
  /**
   * Replaces them by those that `decide` returns; resolves with its result once that is durable.
   * Rejects with what `decide` threw.
   */
  change<T>(decide: () => { readonly sessions: readonly ApiKey[]; readonly result: T }): Promise<T>;
}

/** The sessions of a node that follows a centre, which all workers share. */
export const localSessionsPart: LogPart<LocalSessions> = {
  open: ({ databases: { meta }, queue }) => ({
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
  }),
};
