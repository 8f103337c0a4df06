import { HostFollower, type HostFollowerParts, type TableHostState } from './host-follower.ts';
import type { DataHost } from './host-client.ts';

/** How often the tables are compared with the followers. */
const tablesMs = 500;

/** The dependencies of TableHosts. */
interface TableHostsParts extends HostFollowerParts {
  /** The file with the key for the host of a table. */
  readonly keyFileOf: (table: string) => string | undefined;
}

/** Follows the data hosts of all tables that have one, as tables come, change and go. */
export class TableHosts {
  readonly #parts: TableHostsParts;
  readonly #followers = new Map<
    string,
    { readonly host: DataHost; readonly follower: HostFollower }
  >();
  readonly #ending = new Set<Promise<void>>();
  #timer: NodeJS.Timeout | undefined;
  #seenSeq = -1;

  constructor(parts: TableHostsParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#compare();
    this.#timer = setInterval(() => {
      this.#compare();
    }, tablesMs);
    this.#timer.unref();
  }

  states(): readonly TableHostState[] {
    return [...this.#followers.values()].map(({ follower }) => follower.state);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    for (const [table] of this.#followers) this.#end(table);
    await Promise.all(this.#ending);
  }

  #compare(): void {
    const { store, keyFileOf } = this.#parts;
    const seq = store.seq();
    if (seq === this.#seenSeq) return;
    this.#seenSeq = seq;
    const wanted = new Map<string, DataHost>();
    for (const { table } of store.tablesAfter('')) {
      const { name, host } = table;
      if (host !== undefined) wanted.set(name, { url: host, keyFile: keyFileOf(name) });
    }
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

  #end(table: string): void {
    const ended = this.#followers.get(table)?.follower.stop() ?? Promise.resolve();
    this.#followers.delete(table);
    this.#ending.add(ended);
    void ended.finally(() => this.#ending.delete(ended));
  }
}
