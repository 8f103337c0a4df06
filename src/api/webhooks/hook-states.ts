import { isDelivered, isExecutedOn, waitingFields, type Node } from '../../model/hook.ts';
import type { Reads } from '../../store/store.ts';
import type { WebhookState } from '../server-status.ts';

/** Makes what counts the hooks by their state; they are read again only where one has changed. */
export function countHookStates(
  store: Pick<Reads, 'hooksStamp' | 'hooksAfter'>,
  node: Node,
): () => WebhookState {
  let known: { readonly stamp: string | undefined; readonly state: WebhookState } | undefined;
  return () => {
    const stamp = store.hooksStamp();
    if (known === undefined || known.stamp !== stamp)
      known = { stamp, state: stateOf(store, node) };
    return known.state;
  };
}

function stateOf(store: Pick<Reads, 'hooksAfter'>, node: Node): WebhookState {
  const state = { paused: 0, waiting: 0, without_node: 0 };
  for (const { hook } of store.hooksAfter('')) {
    if (!isDelivered(hook)) state.paused += 1;
    if (waitingFields(hook).length > 0) state.waiting += 1;
    if (!isExecutedOn(hook, node)) state.without_node += 1;
  }
  return state;
}
