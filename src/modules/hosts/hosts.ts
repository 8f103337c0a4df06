import type { BackgroundTasks, RunningTask, Task } from '../../core/background/tasks.ts';
import { backgroundPollMs } from '../../core/log/limits.ts';
import { doInTurn } from '../cluster/log/task-turn.ts';
import { HostFollower, type HostFollowerParts, type TableHostState } from './host-follower.ts';
import type { DataHost } from './host-client.ts';
import { storedTables } from '../tables/log/family.ts';

interface TableHostsParts extends HostFollowerParts {
  readonly tasks: Pick<BackgroundTasks, 'start'>;
  /** The file with the key for the host of a table. */
  readonly keyFileOf: (table: string) => string | undefined;
}

/**
 * Follows the data hosts of all tables that have one, as tables come, change and go. Of the nodes
 * of a cluster, one does it at a time.
 */
export class TableHosts {
  readonly #parts: TableHostsParts;
  readonly #followers = new Map<
    string,
    { readonly host: DataHost; readonly follower: HostFollower; readonly task: RunningTask }
  >();
  #isFollowing = false;
  #seenSeq = -1;
  /** Since when another node of the cluster follows, ISO 8601, UTC. */
  #elsewhereSince: string;

  constructor(parts: TableHostsParts) {
    this.#parts = parts;
    this.#elsewhereSince = this.#time();
  }

  get task(): Task {
    const turn = this.#parts.store.shared?.task('hosts');
    return {
      name: 'table_hosts',
      title: 'The look for tables with a data host',
      run: (signal, well) => {
        const work = (until: AbortSignal): Promise<void> => this.#followUntil(until, well);
        return turn === undefined ? work(signal) : doInTurn(turn, work, signal);
      },
    };
  }

  states(): readonly TableHostState[] {
    if (this.#isFollowing || this.#parts.store.shared === undefined) {
      return [...this.#followers.values()].map(({ follower }) => follower.state);
    }
    const state = { state: 'other_node', since: this.#elsewhereSince } as const;
    return [...this.#wanted()].map(([table, { url: host }]) => ({
      ...{ table, host, ...state, problem: null, seq: null },
    }));
  }

  /** Compares the tables with the followers, at first and after each change of the log. */
  async #followUntil(signal: AbortSignal, well: () => void): Promise<void> {
    const { store } = this.#parts;
    this.#seenSeq = -1;
    this.#isFollowing = true;
    try {
      while (!signal.aborted) {
        this.#compare();
        well();
        await store.waitForRows(this.#seenSeq, signal, backgroundPollMs);
      }
    } finally {
      this.#isFollowing = false;
      await Promise.all([...this.#followers.keys()].map((table) => this.#end(table)));
      this.#elsewhereSince = this.#time();
    }
  }

  #time(): string {
    return new Date(this.#parts.now()).toISOString();
  }

  #compare(): void {
    const seq = this.#parts.store.seq();
    if (seq === this.#seenSeq) return;
    this.#seenSeq = seq;
    const wanted = this.#wanted();
    for (const [table, { host }] of this.#followers) {
      const { url, keyFile } = wanted.get(table) ?? {};
      if (url !== host.url || keyFile !== host.keyFile) void this.#end(table);
    }
    for (const [table, host] of wanted) {
      if (this.#followers.has(table)) continue;
      const follower = new HostFollower(this.#parts, table, host);
      const task = this.#parts.tasks.start(follower.task);
      this.#followers.set(table, { host, follower, task });
    }
  }

  /** The data hosts of the tables that have one, by the name of the table. */
  #wanted(): ReadonlyMap<string, DataHost> {
    const { store, keyFileOf } = this.#parts;
    const wanted = new Map<string, DataHost>();
    for (const { table } of store.of(storedTables).tablesAfter('')) {
      const { name, host } = table;
      if (host !== undefined) wanted.set(name, { url: host, keyFile: keyFileOf(name) });
    }
    return wanted;
  }

  async #end(table: string): Promise<void> {
    const { task } = this.#followers.get(table) ?? {};
    this.#followers.delete(table);
    await task?.stop();
  }
}
