import { LRUCache } from 'lru-cache';
import type { Databases } from '../../../core/log/databases.ts';
import { keyOf, storedJson } from '../../../core/log/encoding.ts';
import type { Reads } from '../../../core/log/store.ts';
import { foldRows } from '../../../core/log/write/fold.ts';
import { parseJson } from '../../../core/values/json/parse.ts';
import { type HookSecret, type StoredHook, anyEvent, foldHook } from '../hook.ts';

/** Characters of the hooks in the cache by event type … */
const hooksRememberedCharactersMax = 32 * 2 ** 20;

/** … and the overhead of each entry, so that types without hooks are limited too. */
const listedHooksCharacters = 256;

/** Reads of hooks and their secrets. */
export interface HookReads {
  /** The current state of a hook; undefined when there is none. */
  hook(id: string): StoredHook | undefined;
  /** A hook as it was right after the change `seq` of the log. */
  hookAt(id: string, seq: number): StoredHook | undefined;
  /** The current hooks in the order of their ids, after `after`. */
  hooksAfter(after: string): Iterable<StoredHook>;
  /** The current hooks that subscribe to a type of event, or to all events. */
  hooksFor(type: string): readonly StoredHook[];
  /** A text that changes with each change of any hook or secret; undefined before the first one. */
  hooksStamp(): string | undefined;
  /** The secret of a hook, which signs its deliveries; also of a deleted hook. */
  hookSecret(id: string): HookSecret | undefined;
}

/** The hooks that name an event type. */
interface NamedHooks {
  readonly hooks: readonly StoredHook[];
  /** Length of their texts. */
  readonly characters: number;
}

/** Reads the projections of hooks, and their past states from the rows of the log. */
export function createHookReads(databases: Databases, rows: Reads['rows']): HookReads {
  const { hook, hooktype, hooksecret, meta } = databases;
  // Every event needs them, and they change rarely. Hooks for all types are cached once.
  const byType = new LRUCache<string, NamedHooks>({
    maxSize: hooksRememberedCharactersMax,
    sizeCalculation: ({ characters }) => characters + listedHooksCharacters,
  });
  let stamp: string | undefined;

  function byId(id: string): StoredHook | undefined {
    const text = hook.get(keyOf(id));
    return text === undefined ? undefined : (storedJson(text) as StoredHook);
  }

  function naming(type: string): readonly StoredHook[] {
    const known = byType.get(type);
    if (known !== undefined) return known.hooks;
    const key = keyOf(type);
    const ids = hooktype.doesExist(key) ? [...hooktype.getValues(key)] : [];
    const texts = ids.flatMap((id) => hook.get(keyOf(id)) ?? []);
    const hooks = texts.map((text) => parseJson(text) as StoredHook);
    const characters = texts.reduce((sum, text) => sum + text.length, 0);
    byType.set(type, { hooks, characters });
    return hooks;
  }

  return {
    hook: byId,
    hookAt(id, seq) {
      const current = byId(id);
      if (current !== undefined && current.seq <= seq) return current;
      return foldRows(rows('webhook', id, seq), foldHook).stored;
    },
    *hooksAfter(after) {
      const start = after === '' ? undefined : Buffer.concat([keyOf(after), Buffer.from([0])]);
      for (const { value } of hook.getRange(start === undefined ? {} : { start })) {
        yield storedJson(value) as StoredHook;
      }
    },
    hooksFor(type) {
      const newest = meta.get('hooks');
      if (newest === undefined) return [];
      if (newest !== stamp) byType.clear();
      stamp = newest;
      const [named, all] = [naming(type), naming(anyEvent)];
      return named.length === 0 || type === anyEvent ? all : [...named, ...all];
    },
    hooksStamp: () => meta.get('hooks'),
    hookSecret(id) {
      const text = hooksecret.get(keyOf(id));
      return text === undefined ? undefined : (storedJson(text) as HookSecret);
    },
  };
}
