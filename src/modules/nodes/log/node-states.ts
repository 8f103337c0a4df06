import type { JsonObject } from '../../../core/values/json/json.ts';
import { keyOf, storedJson } from '../../../core/log/encoding.ts';
import type { LogPart } from '../../../core/log/store.ts';

/** The last report of a node that follows this one or is in its cluster, and when it came. */
export interface NodeState {
  readonly name: string;
  readonly role: string;
  readonly place?: string;
  readonly version: string;
  readonly protocol: number;
  /** The newest change that it has. */
  readonly seq: number;
  /** Entries of its outbox that wait, and that the centre has refused. */
  readonly outbox: { readonly waiting: number; readonly refused: number };
  /** Its queue of each hook that it delivers, by the id of the hook: HookQueueState. */
  readonly deliveries?: JsonObject;
  /** Its clock less that of this node, in milliseconds. */
  readonly clock_offset_ms: number;
  /** What is wrong with the node, a sentence. */
  readonly problem?: string;
  /** When the report came: ISO 8601, UTC. */
  readonly last_contact: string;
  /** Whether its silence has been reported since. */
  readonly silent: boolean;
  /** Of a machine of the cluster: its data folder (memberOf), and how far it has the shared log. */
  readonly cluster?: { readonly member: string; readonly position: number };
  /** Of a node that follows the cluster: the name of the machine that it reports to. */
  readonly via?: string;
}

/** The connection of this node to its centre. */
interface CentralLink {
  readonly connected: boolean;
  /** Since when: ISO 8601, UTC. */
  readonly since: string;
  /** Why it is not connected. */
  readonly problem?: string;
}

/** The nodes that follow this one or are in its cluster. Their reports add no rows to the log. */
export interface Nodes {
  all(): readonly NodeState[];
  get(name: string): NodeState | undefined;
  /** Stores the state of a node; resolves when that is durable. */
  put(state: NodeState): Promise<void>;
  remove(name: string): Promise<void>;
  /** The connection to the centre, as the process that follows it has recorded it. */
  link(): CentralLink | undefined;
  setLink(link: CentralLink): Promise<void>;
}

/** The nodes that follow this one or are in its cluster. */
export const nodesPart: LogPart<Nodes> = {
  open: ({ databases: { node, meta }, queue }) => ({
    all: () => [...node.getRange()].map(({ value }) => storedJson(value) as NodeState),
    get(name) {
      const text = node.get(keyOf(name));
      return text === undefined ? undefined : (storedJson(text) as NodeState);
    },
    link() {
      const text = meta.get('link');
      return text === undefined ? undefined : (storedJson(text) as CentralLink);
    },
    setLink: (link) =>
      queue.write(() => () => {
        meta.putSync('link', JSON.stringify(link));
        return { result: undefined, bytes: 0 };
      }),
    remove: (name) =>
      queue.write(() => () => {
        node.removeSync(keyOf(name));
        return { result: undefined, bytes: 0 };
      }),
    put: (state) =>
      queue.write(() => () => {
        const text = JSON.stringify(state);
        node.putSync(keyOf(state.name), text);
        return { result: undefined, bytes: text.length };
      }),
  }),
};
