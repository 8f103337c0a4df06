import type { Hook, Node } from '../../webhooks/hook.ts';
import { hasScope, type ApiKey } from '../../../core/values/key.ts';
import type { Store } from '../../../core/log/store.ts';
import { defineOperation } from '../../../core/operations/operation.ts';
import { nodeProperties, requireNode } from './access.ts';

/**
 * node.secrets: the rows with the secrets and header values of the hooks that a node delivers
 * (docs/design/nodes.md#what-a-follower-gets).
 */
export const readNodeSecrets = defineOperation({
  name: 'svc1.node.secrets',
  scope: 'follow',
  // Only the centre has them, so that a node passes this on to its own centre.
  effect: 'writes',
  summary: 'The secrets and header values of the webhooks that a node delivers.',
  input: {
    type: 'object',
    required: ['node', 'role'],
    // A node may be of a later version than its centre.
    additionalProperties: true,
    properties: { ...nodeProperties, role: { type: 'string', enum: ['replica', 'counter'] } },
  },
  output: {
    title: 'NodeSecrets',
    type: 'object',
    required: ['rows'],
    properties: {
      rows: { type: 'array', items: { type: 'string' }, description: 'Rows of the log, as JSON.' },
    },
  },
  run:
    ({ store }: { readonly store: Store }) =>
    (v, call) => {
      requireNode(store, v, call);
      const isCounter = v.role === 'counter' && maySendEntries(store.key(call.caller.keyId ?? ''));
      const node: Node = { name: v.node, role: isCounter ? 'counter' : 'replica' };
      const rows: string[] = [];
      for (const { hook } of store.hooksAfter('')) {
        if (mayDeliver(hook, node)) rows.push(...store.rowLog.withheldRows(hook.id));
      }
      return { kind: 'data', data: { rows } };
    },
});

/**
 * Whether a key may send what a counter takes: its own scopes say whether it is that of a counter,
 * the request does not, and neither do the scopes of anonymous callers.
 */
function maySendEntries(key: ApiKey | undefined): boolean {
  const scopes = new Set(key?.scopes);
  return (
    hasScope({ scopes }, 'event') || [...scopes].some((scope) => scope.startsWith('record.write'))
  );
}

/** Whether any event can make a node deliver a hook; without `where`, each event decides. */
function mayDeliver({ where }: Hook, { role, name }: Node): boolean {
  if (where === name) return true;
  return role === 'counter' && (where === undefined || where === 'counters');
}
