import { type HookReads, createHookReads } from './hook-reads.ts';
import { keyOf } from '../../../core/log/encoding.ts';
import type { FamilyProjection, ReadFamily } from '../../../core/log/store.ts';
import { type HookSecret, type StoredHook, foldHook, foldSecret, hookOfSecret } from '../hook.ts';

const webhook: FamilyProjection<StoredHook> = {
  stored: (reads, id) => reads.of(storedHooks).hook(id),
  at: (reads, id, seq) => reads.of(storedHooks).hookAt(id, seq),
  fold: foldHook,
  plan({ entries }, change, { before, after }) {
    const { id } = change;
    for (const type of before?.hook.event ?? []) entries.remove('hooktype', keyOf(type), id);
    for (const type of after?.hook.event ?? []) entries.put('hooktype', keyOf(type), id);
    entries.state('hook', keyOf(id), after);
    entries.stampHooks(change);
  },
};

const secret: FamilyProjection<HookSecret> = {
  stored: (reads, id) => reads.of(storedHooks).hookSecret(hookOfSecret(id)),
  fold: foldSecret,
  plan({ entries }, change, { after }) {
    entries.state('hooksecret', keyOf(hookOfSecret(change.id)), after);
    entries.stampHooks(change);
  },
};

/** The hooks and their secrets. */
export const storedHooks: ReadFamily<HookReads> = {
  records: { webhook, secret },
  watched: ['hooks'],
  reads: (databases, { rows }) => createHookReads(databases, rows),
};
