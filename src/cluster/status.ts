import type { Config } from '../config/config.ts';
import { silentLog } from '../observability/log.ts';
import type { StreamInfo } from './jetstream-api.ts';
import { connectMsMax } from './limits.ts';
import { ReconnectingNats } from './nats-connection.ts';
import { createStream, requireStream } from './stream.ts';

/** A server that has a copy of the stream. */
interface StreamServer {
  readonly name: string;
  readonly role: 'leader' | 'replica';
  /** Whether it has all messages, is behind the leader, or cannot be reached by it. */
  readonly state: 'current' | 'behind' | 'offline';
  /** Messages that it has not stored yet. */
  readonly lag: number;
}

/** The stream of a cluster. */
export interface ClusterStatus {
  readonly stream: string;
  /** The id of its log. */
  readonly log: string;
  /** The position of the newest entry. */
  readonly end: number;
  readonly bytes: number;
  readonly servers: readonly StreamServer[];
}

/** Resolves to the state of the stream of a cluster. Rejects as openStreamLog without an id. */
export async function clusterStatus(settings: Config['cluster']): Promise<ClusterStatus> {
  return withNats(settings, async (nats) => {
    const { id, info } = await requireStream(nats, { name: settings.name, id: undefined });
    return statusOf(settings.name, { id, info });
  });
}

/**
 * Makes the stream of a cluster, on three servers if there are as many, or finds the one with the
 * same log. Rejects with `conflict` if the stream has another log, otherwise as clusterStatus.
 */
export async function createCluster(
  settings: Config['cluster'],
  { id, replicas }: { readonly id: string; readonly replicas?: number | undefined },
): Promise<ClusterStatus> {
  const { name, servers } = settings;
  return withNats(settings, async (nats) => {
    const { info: known } = await nats.connection(connectMsMax);
    // A cluster of servers tells about members that the ini file does not name.
    const count = Math.max(servers.length, known?.connect_urls?.length ?? 0);
    const copies = replicas ?? (count >= 3 ? 3 : 1);
    return statusOf(name, await createStream(nats, { name, id, replicas: copies }));
  });
}

async function withNats<T>(
  settings: Config['cluster'],
  use: (nats: ReconnectingNats) => Promise<T>,
): Promise<T> {
  const nats = new ReconnectingNats(settings, { log: silentLog });
  try {
    await nats.connection(connectMsMax * settings.servers.length, { isTried: true });
    return await use(nats);
  } finally {
    await nats.close();
  }
}

function statusOf(
  stream: string,
  { id, info }: { readonly id: string; readonly info: StreamInfo },
): ClusterStatus {
  const { state, cluster } = info;
  const leader: StreamServer = {
    ...{ name: cluster?.leader ?? '-', role: 'leader', state: 'current', lag: 0 },
  };
  const replicas = (cluster?.replicas ?? []).map(
    ({ name, current, offline, lag = 0 }): StreamServer => ({
      ...{ name, role: 'replica', lag },
      state: offline === true ? 'offline' : current ? 'current' : 'behind',
    }),
  );
  const { last_seq: end, bytes } = state;
  return { stream, log: id, end, bytes, servers: [leader, ...replicas] };
}
