import type { StaticInput } from '../../../core/values/json/static.ts';
import { Failure } from '../../../core/values/failure.ts';
import type { Store } from '../../../core/log/store.ts';
import type { Call } from '../../../core/operations/operation.ts';

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
