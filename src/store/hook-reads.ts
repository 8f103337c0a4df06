import { anyEvent, type HookSecret, type StoredHook } from '../model/hook.ts';
import { hookTypesRememberedMax } from '../model/limits.ts';
import { remembered } from '../model/remembered.ts';
import type { Databases } from './databases.ts';
import { foldHook, foldRows } from './fold.ts';
import { keyOf } from './key-bytes.ts';
import type { Reads } from './store.ts';
import { storedJson } from './stored-json.ts';

type HookReads = Pick<
  Reads,
  'hook' | 'hookAt' | 'hooksAfter' | 'hooksFor' | 'hooksStamp' | 'hookSecret'
>;

/** Reads of the projections of hooks, with the rows of a record to tell of the past. */
export function createHookReads(databases: Databases, rows: Reads['rows']): HookReads {
  const { hook, hooktype, hooksecret, meta } = databases;
  // Every event asks for them, and they change seldom.
  const byType = remembered<readonly StoredHook[]>(hookTypesRememberedMax);
  let stamp: string | undefined;

  function byId(id: string): StoredHook | undefined {
    const text = hook.get(keyOf(id));
    return text === undefined ? undefined : (storedJson(text) as StoredHook);
  }

  function findFor(type: string): readonly StoredHook[] {
    const ids = [keyOf(type), keyOf(anyEvent)].flatMap((key) =>
      hooktype.doesExist(key) ? [...hooktype.getValues(key)] : [],
    );
    return ids.flatMap((id) => byId(id) ?? []);
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
      const known = byType.get(type);
      if (known !== undefined) return known;
      const found = findFor(type);
      byType.set(type, found);
      return found;
    },
    hooksStamp: () => meta.get('hooks'),
    hookSecret(id) {
      const text = hooksecret.get(keyOf(id));
      return text === undefined ? undefined : (storedJson(text) as HookSecret);
    },
  };
}
