import { type Task, atIntervals } from '../../core/background/tasks.ts';
import type { SharedPart, Store } from '../../core/log/store.ts';
import type { Log } from '../../core/report/log.ts';
import { newId } from '../../core/values/clock.ts';
import { isJsonObject } from '../../core/values/json/json.ts';
import type { Node } from '../webhooks/hook.ts';
import { followProtocol } from './copy-rows.ts';
import { reportMs } from './limits.ts';
import { type NodeState, nodesPart } from './log/node-states.ts';

/** Bytes of the nodes in one message of a node of a cluster to the others. */
const signBytesMax = 200_000;

/** Signs of another process of the same data folder after which two machines have a copy of it. */
const twinSignsMin = 3;

interface MembersParts {
  readonly store: Store;
  readonly shared: SharedPart;
  readonly node: Node;
  readonly version: string;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly log: Log;
}

/** The message of a node to the others: itself, and the nodes that follow it. */
interface Sign {
  readonly member: NodeState;
  /** The process; a version that is older does not say it. */
  readonly process?: string;
  readonly followers: readonly NodeState[];
}

/**
 * Tells the other nodes of a cluster about this one and the nodes that follow it, and records their
 * messages (docs/design/cluster.md#members). It adds no entries to the log.
 */
export class Members {
  readonly #parts: MembersParts;
  /** Writes that have begun. */
  readonly #writing = new Set<Promise<void>>();
  /** The newest report of each follower that the others know. */
  readonly #told = new Map<string, string>();
  /** The machines that this process has heard. */
  readonly #heard = new Set<string>();
  readonly #process = newId();
  /** How often other processes of this data folder were heard: during a restart, there are two. */
  #twins = 0;
  #warned = false;

  constructor(parts: MembersParts) {
    this.#parts = parts;
  }

  get task(): Task {
    return {
      name: 'cluster_members',
      title: 'The exchange with the other machines of the cluster',
      run: async (signal, well) => {
        const forget = this.#parts.shared.onBroadcast((data) => {
          this.#hear(data);
        });
        const sign = atIntervals(reportMs, () => {
          this.#sign();
          return undefined;
        });
        try {
          await sign(signal, well);
        } finally {
          forget();
          await Promise.all(this.#writing);
        }
      },
    };
  }

  #sign(): void {
    const { shared, store } = this.#parts;
    const member = this.#own();
    this.#put([member]);
    const reported = store
      .part(nodesPart)
      .all()
      .filter(({ name, cluster, last_contact: contact }) => {
        return cluster === undefined && this.#told.get(name) !== contact;
      });
    for (const { name, last_contact: contact } of reported) this.#told.set(name, contact);
    for (const followers of grouped(reported)) {
      void shared.broadcast(
        Buffer.from(JSON.stringify({ member, followers, process: this.#process } satisfies Sign)),
      );
    }
  }

  #own(): NodeState {
    const { store, shared, node, version, now } = this.#parts;
    return {
      ...{ name: node.name, role: node.role, version, protocol: followProtocol },
      ...{ seq: store.seq(), outbox: { waiting: 0, refused: 0 }, clock_offset_ms: 0 },
      ...{ last_contact: new Date(now()).toISOString(), silent: false },
      cluster: { member: shared.member, position: store.sharedPlace()?.position ?? 0 },
    };
  }

  #hear(data: Uint8Array): void {
    const { shared, store, node, now } = this.#parts;
    const sign = signFrom(data);
    if (sign === undefined || sign.process === this.#process) return;
    const { member, followers } = sign;
    if (member.cluster?.member === shared.member) {
      if (sign.process !== undefined) this.#twins += 1;
      if (this.#twins >= twinSignsMin) this.#warn(copiedFolder);
      return;
    }
    if (member.name === node.name) {
      this.#warn(
        `Two machines of the cluster have the name ${node.name}: set another \`name\` in [node] ` +
          'of one of them.',
      );
      return;
    }
    for (const { name, last_contact: at } of followers) this.#told.set(name, at);
    const contact = new Date(now()).toISOString();
    const offset = Date.parse(member.last_contact) - now();
    const newer = followers.filter(
      ({ name, last_contact: at }) => at > (store.part(nodesPart).get(name)?.last_contact ?? ''),
    );
    const heard = { ...member, clock_offset_ms: offset, last_contact: contact, silent: false };
    this.#put([heard, ...newer]);
    const { member: id = '' } = member.cluster ?? {};
    if (this.#heard.has(id)) return;
    // A new machine does not know the nodes that are silent at present.
    this.#heard.add(id);
    this.#told.clear();
    this.#sign();
  }

  /** Warns once. */
  #warn(message: string): void {
    if (!this.#warned) this.#parts.log.warn({}, message);
    this.#warned = true;
  }

  #put(states: readonly NodeState[]): void {
    const { store, log } = this.#parts;
    const puts = Promise.all(states.map((state) => store.part(nodesPart).put(state)));
    const written: Promise<void> = puts
      .then(
        () => undefined,
        (error: unknown) => {
          log.debug({ err: error }, 'Cannot record the nodes of the cluster.');
        },
      )
      .finally(() => this.#writing.delete(written));
    this.#writing.add(written);
  }
}

const copiedFolder =
  'Another machine of the cluster runs with a copy of this data folder, and both deliver ' +
  'webhooks: stop one, and start it with an empty folder, or with one that `waymark backup` ' +
  'has made.';

/** Groups of followers for one message each; one group without followers if there are none. */
function* grouped(states: readonly NodeState[]): Iterable<readonly NodeState[]> {
  let [group, bytes]: [NodeState[], number] = [[], 0];
  for (const state of states) {
    const size = JSON.stringify(state).length;
    if (group.length > 0 && bytes + size > signBytesMax) {
      yield group;
      [group, bytes] = [[], 0];
    }
    group.push(state);
    bytes += size;
  }
  yield group;
}

/** Reads a sign; undefined for other messages, such as those of a version that differs. */
function signFrom(data: Uint8Array): Sign | undefined {
  let sign: unknown;
  try {
    sign = JSON.parse(Buffer.from(data).toString());
  } catch {
    return undefined;
  }
  if (!isJsonObject(sign) || !Array.isArray(sign.followers)) return undefined;
  const { member, followers } = sign;
  const isWhole = isState(member) && isJsonObject(member.cluster) && followers.every(isState);
  return isWhole ? (sign as unknown as Sign) : undefined;
}

function isState(value: unknown): value is Record<string, unknown> {
  if (!isJsonObject(value)) return false;
  const { name, role, version, seq, outbox, last_contact: contact } = value;
  const isText = [name, role, version, contact].every((text) => typeof text === 'string');
  return isText && name !== '' && Number.isSafeInteger(seq) && isJsonObject(outbox);
}
