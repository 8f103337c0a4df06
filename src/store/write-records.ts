import type { Change } from '../model/change.ts';
import { hookOfSecret, type HookSecret, type StoredHook } from '../model/hook.ts';
import type { ApiKey } from '../model/key.ts';
import type { Databases } from './databases.ts';
import { foldHook, foldKey, foldSecret } from './fold.ts';
import { keyOf } from './key-bytes.ts';
import type { Reads } from './store.ts';
import { afterRow, type Marks, type Transition, type WrittenRow } from './write-row.ts';

/** Puts the new state of a record. The caller runs it in a write transaction. */
export type PutRecord = (databases: Databases) => void;

interface RecordPlan {
  readonly marks: Marks;
  readonly putRecord: PutRecord | undefined;
}

/** Plans the effects of one decision on records that are not page rules. */
export class RecordPlanner {
  readonly #reads: Reads;
  // Several changes of one decision may concern the same record.
  readonly #keys = new Map<string, ApiKey | undefined>();
  readonly #hooks = new Map<string, WrittenRow<StoredHook>>();
  readonly #secrets = new Map<string, HookSecret>();

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  /** Plans the next change. Throws an Error if it cannot follow, which is a bug of the caller. */
  plan(change: Change): RecordPlan {
    switch (change.family) {
      case 'key':
        return { marks: [], putRecord: this.#key(change) };
      case 'secret':
        return { marks: [], putRecord: this.#secret(change) };
      case 'webhook':
        return this.#hook(change);
      case 'event':
      case 'replay':
      case 'purge':
        return { marks: [], putRecord: undefined };
      case 'userinterface':
        throw new TypeError('page rules are planned elsewhere');
    }
  }

  #key(change: Change): PutRecord {
    const { id } = change;
    const before = this.#keys.has(id) ? this.#keys.get(id) : this.#reads.key(id);
    const after = foldKey(before, change);
    this.#keys.set(id, after);
    return (databases) => {
      putKey(databases, id, { before, after });
    };
  }

  #secret(change: Change): PutRecord {
    const hookId = hookOfSecret(change.id);
    const after = foldSecret(this.#secrets.get(hookId) ?? this.#reads.hookSecret(hookId), change);
    this.#secrets.set(hookId, after);
    return ({ hooksecret, meta }) => {
      hooksecret.putSync(keyOf(hookId), JSON.stringify(after));
      putHooksStamp(meta, change);
    };
  }

  #hook(change: Change): RecordPlan {
    const { id } = change;
    const state = this.#hooks.get(id) ?? { stored: this.#reads.hook(id), written: [] };
    const { stored: after, marks } = afterRow(this.#reads, state, change, foldHook);
    this.#hooks.set(id, { stored: after, written: [...state.written, change] });
    return {
      marks,
      putRecord: (databases) => {
        putHook(databases, id, { before: state.stored, after });
        putHooksStamp(databases.meta, change);
      },
    };
  }
}

/** Includes the transaction, because another change can get the seq of a rolled-back one. */
function putHooksStamp(meta: Databases['meta'], { seq, txn }: Change): void {
  meta.putSync('hooks', `${seq} ${txn}`);
}

function putKey(
  { key, keyhash }: Databases,
  id: string,
  { before, after }: Transition<ApiKey>,
): void {
  if (before !== undefined) keyhash.removeSync(keyOf(before.hash));
  if (after === undefined) {
    key.removeSync(keyOf(id));
    return;
  }
  key.putSync(keyOf(id), JSON.stringify(after));
  keyhash.putSync(keyOf(after.hash), id);
}

function putHook(
  { hook, hooktype }: Databases,
  id: string,
  { before, after }: Transition<StoredHook>,
): void {
  for (const type of before?.hook.event ?? []) hooktype.removeSync(keyOf(type), id);
  if (after === undefined) {
    hook.removeSync(keyOf(id));
    return;
  }
  hook.putSync(keyOf(id), JSON.stringify(after));
  for (const type of after.hook.event) hooktype.putSync(keyOf(type), id);
}
