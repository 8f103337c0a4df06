import { turnsName } from '../fair/shared-limit.ts';
import { eventLoop, type WorkTurns } from '../fair/turns.ts';
import type { Store } from '../log/store.ts';
import type { Call } from './operation.ts';

/** The turns of a call on the event loop, in the line of its key, or of its network. */
export function turnsOf({ caller, signal }: Pick<Call, 'caller' | 'signal'>): WorkTurns {
  return eventLoop.turns(turnsName(caller), signal());
}

/**
 * Runs a read whose work grows with the data, in turns of its caller: `read` waits for the next one
 * whenever `turns.isOver()`. The store that it gets has one state of the log in all of them.
 */
export async function readInTurns<Parts extends { readonly store: Store }, T>(
  parts: Parts,
  call: Pick<Call, 'caller' | 'signal'>,
  read: (then: Parts, turns: WorkTurns) => Promise<T>,
): Promise<T> {
  const { store } = parts;
  const turns = turnsOf(call);
  await turns.next();
  return store.inSnapshot((reads) => read({ ...parts, store: { ...store, ...reads } }, turns));
}
