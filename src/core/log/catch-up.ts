import type { Store } from './store.ts';

/**
 * Waits for a change that another node of the cluster has shown to a caller, and that this node may
 * not have yet. Resolves also if the cluster has no such change. Rejects as SharedPart.catchUp.
 */
export async function catchUpTo(store: Pick<Store, 'seq' | 'shared'>, seq: number): Promise<void> {
  if (seq > store.seq()) await store.shared?.catchUp();
}
