import type { JsonObject } from '../values/json/json.ts';
import type { ApiKey } from '../values/key.ts';
import { type Change, mergeFields } from './change.ts';
import { keyOf } from './encoding.ts';
import type { LogFamily, FamilyProjection } from './store.ts';

const key: FamilyProjection<ApiKey> = {
  stored: (reads, id) => reads.key(id),
  fold: foldKey,
  plan({ entries }, { id }, { before, after }) {
    if (before !== undefined) entries.remove('keyhash', keyOf(before.hash));
    if (after !== undefined) entries.put('keyhash', keyOf(after.hash), id);
    entries.state('key', keyOf(id), after);
    if (after === undefined) entries.revokedKey(id);
  },
};

/** The keys, which are records of the log. */
export const keyFamily: LogFamily = { records: { key } };

/** Applies a change to a key; an invalidate revokes it. */
export function foldKey(before: ApiKey | undefined, change: Change): ApiKey | undefined {
  const { id, action, data } = change;
  switch (action) {
    case 'insert':
      if (before !== undefined) throw new Error(`${id} is inserted already`);
      return { id, ...data } as unknown as ApiKey;
    case 'edit':
      if (before === undefined) throw new Error(`${id} cannot be edited, it does not exist`);
      return mergeFields(before as unknown as JsonObject, data) as unknown as ApiKey;
    case 'invalidate':
      return undefined;
  }
}
