import type { TestOptions } from 'node:test';
import { uuidv7 } from 'uuidv7';
import { clusterStatus, createCluster } from '../../../src/modules/cluster/status.ts';
import { openStreamLog } from '../../../src/modules/cluster/stream-log.ts';
import type { Config } from '../../../src/core/config/config.ts';
import { silentLog, type Log } from '../../../src/core/report/log.ts';
import type { SharedEntry, SharedLog } from '../../../src/core/log/shared/shared-log.ts';
import type { Cleaning } from '../../folder.ts';
import { findNatsServer, noServer } from './nats-server.ts';
import { startNats, until, type NatsServer } from './nats.ts';

/** The options of tests that need nats-server. */
export const needsNats: TestOptions = findNatsServer() === undefined ? { skip: noServer } : {};

/** The `[cluster]` of servers. */
export function settingsOf(
  servers: readonly Pick<NatsServer, 'url'>[],
  given: Partial<Config['cluster']> = {},
): Config['cluster'] {
  return {
    servers: servers.map(({ url }) => url),
    name: 'waymark',
    ...{ credentialsFile: undefined, user: undefined, passwordFile: undefined },
    ...{ caFile: undefined, certFile: undefined, keyFile: undefined },
    secretsKeyFile: undefined,
    ...given,
  };
}

/** Servers with an empty log. */
export interface LogRig {
  readonly servers: readonly NatsServer[];
  readonly settings: Config['cluster'];
  /** The id of the log. */
  readonly id: string;
  /** Opens the log as another node would. */
  readonly open: () => Promise<SharedLog>;
  /** The server that leads the stream, once there is one. */
  readonly leader: () => Promise<NatsServer>;
}

/** Starts servers and makes the stream of a log. */
export async function startLog(
  t: Cleaning,
  count: 1 | 3,
  { config = '', log = silentLog }: { readonly config?: string; readonly log?: Log } = {},
): Promise<LogRig> {
  const servers = await startNats(t, { servers: count, config });
  const settings = settingsOf(servers);
  const id = uuidv7();
  // A new cluster has to elect a leader first.
  await until(() => createCluster(settings, { id }));
  return {
    ...{ servers, settings, id },
    open: async () => {
      const shared = await openStreamLog({ settings, id: undefined, log, newId: uuidv7 });
      t.after(() => shared.close());
      return shared;
    },
    leader: () =>
      until(async () => {
        const status = await clusterStatus(settings);
        const name = status.servers.find(({ role }) => role === 'leader')?.name;
        const server = servers.find((one) => one.name === name);
        if (server === undefined) throw new Error('the stream has no leader');
        return server;
      }),
  };
}

/** The entries of a log after a position, up to one. */
export async function entriesUpTo(
  shared: SharedLog,
  end: number,
  after = 0,
): Promise<readonly SharedEntry[]> {
  const stop = new AbortController();
  const entries: SharedEntry[] = [];
  if (end <= after) return entries;
  for await (const entry of shared.entries(after, stop.signal)) {
    entries.push(entry);
    if (entry.position >= end) stop.abort();
  }
  return entries;
}

/**
 * A node that appends texts: it follows the log, and appends directly after the newest entry that
 * it has; it repeats this until the text is stored.
 */
export class Appender {
  readonly #shared: SharedLog;
  readonly #stop = new AbortController();
  readonly #following: Promise<void>;
  #moved = Promise.withResolvers<undefined>();
  /** All entries in the order in which the node has seen them. */
  readonly seen: SharedEntry[] = [];
  /** The positions of the texts that the log has acknowledged. */
  readonly acknowledged = new Map<string, number>();
  /** Appends that another node forestalled, and appends whose outcome was unknown. */
  lost = 0;
  unknown = 0;

  constructor(shared: SharedLog) {
    this.#shared = shared;
    this.#following = this.#follow();
  }

  get position(): number {
    return this.seen.at(-1)?.position ?? 0;
  }

  /** Appends a text; after a failure, it is unknown whether the text is stored. */
  async append(text: string): Promise<void> {
    for (;;) {
      const after = this.position;
      const position = await this.#shared.append(Buffer.from(text), after);
      if (position !== undefined) {
        this.acknowledged.set(text, position);
        await this.reach(position);
        return;
      }
      this.lost += 1;
      await this.reach(after + 1);
    }
  }

  /** As append, but repeats a text whose outcome is unknown. */
  async appendOnce(text: string): Promise<void> {
    for (;;) {
      try {
        if (this.seen.some(({ data }) => Buffer.from(data).toString() === text)) return;
        await this.append(text);
        return;
      } catch {
        this.unknown += 1;
        await until(async () => this.reach(await this.#shared.end()), 60_000);
      }
    }
  }

  /** Resolves when the node has seen an entry at a position or after it. */
  async reach(position: number): Promise<void> {
    while (this.position < position) await this.#moved.promise;
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#following;
  }

  async #follow(): Promise<void> {
    for await (const entry of this.#shared.entries(0, this.#stop.signal)) {
      this.seen.push(entry);
      this.#moved.resolve(undefined);
      this.#moved = Promise.withResolvers<undefined>();
    }
  }
}
