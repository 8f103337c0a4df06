import type { Node } from '../model/hook.ts';
import type { Log } from '../observability/log.ts';
import type { Emit } from '../store/emit.ts';
import type { SharedPart, Store } from '../store/store.ts';
import { silenceLookMs } from './limits.ts';
import { Members } from './members.ts';
import { hearingSince, reportSilentNodes } from './silence.ts';

/** The dependencies of a NodeWatch; `now` in milliseconds since 1970. */
interface NodeWatchParts {
  readonly store: Store;
  readonly emit: Emit;
  readonly node: Node;
  readonly version: string;
  readonly now: () => number;
  readonly log: Log;
}

/** Knows the nodes that follow this one and those of its cluster, and reports silent ones. */
export class NodeWatch {
  readonly #parts: NodeWatchParts;
  readonly #members: Members | undefined;
  #looks: NodeJS.Timeout | undefined;

  constructor(parts: NodeWatchParts) {
    this.#parts = parts;
    const { shared } = parts.store;
    this.#members = shared && new Members({ ...parts, shared });
  }

  start(): void {
    const { store, emit, now, log } = this.#parts;
    const hasKey = (name: string): boolean => store.keys().some(({ node }) => node === name);
    let couldHear = hearingSince(now);
    this.#members?.start();
    this.#looks = setInterval(() => {
      const { shared, nodes } = store;
      // Without the cluster, this node hears nothing of the others.
      if (shared?.state().isConnected === false) couldHear = hearingSince(now);
      const sinceMs = couldHear();
      const reports = isReporter(shared);
      const parts = { nodes, emit, log, now, sinceMs, hasKey, reports };
      reportSilentNodes(parts).catch((error: unknown) => {
        log.error({ err: error }, 'Cannot look for silent nodes.');
      });
    }, silenceLookMs);
    this.#looks.unref();
  }

  async stop(): Promise<void> {
    clearInterval(this.#looks);
    await this.#members?.stop();
  }
}

/** Whether this node reports the silence of others: of a cluster, the one that delivers does. */
function isReporter(shared: SharedPart | undefined): boolean {
  if (shared === undefined) return true;
  const deliverer = shared.tasks().find(({ task }) => task === 'webhooks');
  return deliverer?.member === shared.member;
}
