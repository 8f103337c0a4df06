import { isDelivered, isExecutedOn, waitingFields, type Node } from '../../model/hook.ts';
import type { Reads } from '../../store/store.ts';
import type { WebhookState } from '../server-status.ts';

/** Makes the function that counts webhooks by state; it reads them again only after a change. */
export function createWebhookState(
  store: Pick<Reads, 'hooksStamp' | 'hooksAfter'>,
  { node, localAddress }: { readonly node: Node; readonly localAddress: string | undefined },
): () => WebhookState {
  let known: { readonly stamp: string | undefined; readonly state: WebhookState } | undefined;
  return () => {
    const stamp = store.hooksStamp();
    if (known === undefined || known.stamp !== stamp) {
      const state = { ...countStates(store, node), local_address: localAddress ?? null };
      known = { stamp, state };
    }
    return known.state;
  };
}

function countStates(
  store: Pick<Reads, 'hooksAfter'>,
  node: Node,
): Omit<WebhookState, 'local_address'> {
  const state = { paused: 0, waiting: 0, without_node: 0 };
  for (const { hook } of store.hooksAfter('')) {
    if (!isDelivered(hook)) state.paused += 1;
    if (waitingFields(hook).length > 0) state.waiting += 1;
    if (!isExecutedOn(hook, node)) state.without_node += 1;
  }
  return state;
}
