import { backgroundPollMs } from '../../core/log/limits.ts';
import { doInTurn } from '../cluster/log/task-turn.ts';
import { HostFollower, type HostFollowerParts, type TableHostState } from './host-follower.ts';
import type { DataHost } from './host-client.ts';

interface TableHostsParts extends HostFollowerParts {
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
    { readonly host: DataHost; readonly follower: HostFollower }
  >();
  readonly #ending = new Set<Promise<void>>();
  /** Aborts when this process follows no longer; undefined if it does not follow. */
  #following: AbortController | undefined;
  #comparing: Promise<void> = Promise.resolve();
  #seenSeq = -1;
  readonly #stopped = new AbortController();
  #inTurn: Promise<void> = Promise.resolve();
  /** Since when another node of the cluster follows, ISO 8601, UTC. */
  #elsewhereSince: string;

  constructor(parts: TableHostsParts) {
    this.#parts = parts;
    this.#elsewhereSince = this.#time();
  }

  start(): void {
    const { store, log } = this.#parts;
    if (store.shared === undefined) {
      this.#begin();
      return;
    }
    const failed = (error: unknown): void => {
      log.debug({ err: error }, 'Cannot get the turn to follow data hosts.');
    };
    const work = (signal: AbortSignal): Promise<void> => this.#followUntil(signal);
    const task = store.shared.task('hosts');
    this.#inTurn = doInTurn(task, { work, failed }, this.#stopped.signal);
  }

  states(): readonly TableHostState[] {
    if (this.#following !== undefined || this.#parts.store.shared === undefined) {
      return [...this.#followers.values()].map(({ follower }) => follower.state);
    }
    const state = { state: 'other_node', since: this.#elsewhereSince } as const;
    return [...this.#wanted()].map(([table, { url: host }]) => ({
      ...{ table, host, ...state, problem: null, seq: null },
    }));
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await Promise.all([this.#inTurn, this.#halt()]);
  }

  async #followUntil(signal: AbortSignal): Promise<void> {
    this.#begin();
    if (!signal.aborted) {
      await new Promise((resolve) => {
        signal.addEventListener('abort', resolve, { once: true });
      });
    }
    await this.#halt();
    this.#elsewhereSince = this.#time();
  }

  #begin(): void {
    this.#seenSeq = -1;
    this.#following = new AbortController();
    this.#comparing = this.#compareUntil(this.#following.signal);
  }

  async #halt(): Promise<void> {
    this.#following?.abort();
    this.#following = undefined;
    await this.#comparing;
    for (const [table] of this.#followers) this.#end(table);
    await Promise.all(this.#ending);
  }

  #time(): string {
    return new Date(this.#parts.now()).toISOString();
  }

  /** Compares the tables with the followers, at first and after each change of the log. */
  async #compareUntil(signal: AbortSignal): Promise<void> {
    const { store } = this.#parts;
    while (!signal.aborted) {
      this.#compare();
      await store.waitForRows(this.#seenSeq, signal, backgroundPollMs);
    }
  }

  #compare(): void {
    const seq = this.#parts.store.seq();
    if (seq === this.#seenSeq) return;
    this.#seenSeq = seq;
    const wanted = this.#wanted();
    for (const [table, { host }] of this.#followers) {
      const { url, keyFile } = wanted.get(table) ?? {};
      if (url !== host.url || keyFile !== host.keyFile) this.#end(table);
    }
    for (const [table, host] of wanted) {
      if (this.#followers.has(table)) continue;
      const follower = new HostFollower(this.#parts, table, host);
      this.#followers.set(table, { host, follower });
      follower.start();
    }
  }

  /** The data hosts of the tables that have one, by the name of the table. */
  #wanted(): ReadonlyMap<string, DataHost> {
    const { store, keyFileOf } = this.#parts;
    const wanted = new Map<string, DataHost>();
    for (const { table } of store.tablesAfter('')) {
      const { name, host } = table;
      if (host !== undefined) wanted.set(name, { url: host, keyFile: keyFileOf(name) });
    }
    return wanted;
  }

  #end(table: string): void {
    const ended = this.#followers.get(table)?.follower.stop() ?? Promise.resolve();
    this.#followers.delete(table);
    this.#ending.add(ended);
    void ended.finally(() => this.#ending.delete(ended));
  }
}
