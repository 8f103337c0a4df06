import type { Store } from '../../../core/log/store.ts';
import { type Call, defineOperation } from '../../../core/operations/operation.ts';
import { Failure } from '../../../core/values/failure.ts';
import type { StaticInput } from '../../../core/values/json/static.ts';
import { type ApiKey, hasScope } from '../../../core/values/key.ts';
import type { Hook, Node } from '../../webhooks/hook.ts';
import { rowLogPart } from '../log/open-row-log.ts';
import { storedHooks } from '../../webhooks/log/family.ts';

/** The version of the protocol between nodes; a node understands versions from `protocolMin`. */
export const nodeProtocol = 1;
const protocolMin = 1;

/** Every request of a node has these members, which describe the node. */
export const nodeProperties = {
  node: { type: 'string', minLength: 1, description: 'The name of the node that requests this.' },
  protocol: {
    type: 'integer',
    minimum: 0,
    nullable: true,
    description: 'The version of the protocol that the node uses.',
  },
} as const;

/** The members of a request that describe its node. */
type NodeMembers = StaticInput<{
  readonly type: 'object';
  readonly required: readonly ['node'];
  readonly properties: typeof nodeProperties;
}>;

/**
 * Throws `forbidden` if the key of a call belongs to another node or to none, and `unprocessable`
 * for a node whose version is too old.
 */
export function requireNode(
  store: Pick<Store, 'key'>,
  { node, protocol = nodeProtocol }: NodeMembers,
  { caller }: Pick<Call, 'caller'>,
): void {
  const owner = caller.keyId === undefined ? undefined : store.key(caller.keyId)?.node;
  if (owner !== node) {
    throw new Failure(
      'forbidden',
      owner === undefined
        ? 'This key belongs to no node: make one with `waymark key add --scope follow --node`.'
        : `This key belongs to the node ${owner}, not to ${node}: each node needs its own.`,
    );
  }
  if (protocol >= protocolMin) return;
  throw new Failure('unprocessable', `The node ${node} is too old for this server: update it.`);
}

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
      for (const { hook } of store.of(storedHooks).hooksAfter('')) {
        if (mayDeliver(hook, node)) rows.push(...store.part(rowLogPart).withheldRows(hook.id));
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
