import type { Config } from '../../core/config/config.ts';
import type { CopyServer, SharedFile, SharedFilesState } from '../../core/log/shared/shared-log.ts';
import { silentLog } from '../../core/report/log.ts';
import type { StreamInfo } from './jetstream-api.ts';
import { connectMsMax } from './limits.ts';
import { ReconnectingNats } from './nats-connection.ts';
import { createStreamFiles } from './stream-files.ts';
import {
  createStream,
  filesState,
  requireStream,
  retentionMsOf,
  serversOf,
  setRetention,
} from './stream.ts';

/** The stream of a cluster. */
export interface ClusterStatus {
  readonly stream: string;
  /** The id of its log. */
  readonly log: string;
  /** The position of its first message; one more than `end` if it has none. */
  readonly first: number;
  /** When that was stored, ISO 8601, UTC; null without messages. */
  readonly since: string | null;
  /** The position of the newest entry. */
  readonly end: number;
  readonly bytes: number;
  /** How long it has each message; 0 for always. */
  readonly retention_ms: number;
  readonly servers: readonly CopyServer[];
}

/** Resolves to the state of the stream of a cluster. Rejects as openStreamLog without an id. */
export async function clusterStatus(settings: Config['cluster']): Promise<ClusterStatus> {
  return withNats(settings, async (nats) => {
    const { id, info } = await requireStream(nats, { name: settings.name, id: undefined });
    return statusOf(settings.name, { id, info });
  });
}

/** The files of assets that the servers of a cluster have. */
export interface ClusterFiles {
  readonly state: SharedFilesState;
  readonly files: readonly SharedFile[];
}

/**
 * Resolves to the state of the stream of files, and to what is in it; undefined before the first
 * file. Rejects as clusterStatus.
 */
export async function clusterFiles(settings: Config['cluster']): Promise<ClusterFiles | undefined> {
  const { name } = settings;
  return withNats(settings, async (nats) => {
    const { id } = await requireStream(nats, { name, id: undefined });
    const state = await filesState(nats, name);
    if (state === undefined) return undefined;
    return { state, files: await createStreamFiles({ nats, name, id }).list() };
  });
}

/**
 * Makes the stream of a cluster, on three servers if there are as many, or finds the one with the
 * same log. Rejects with `conflict` if the stream has another log, otherwise as clusterStatus.
 */
export async function createCluster(
  settings: Config['cluster'],
  {
    id,
    replicas,
    retentionMs,
  }: {
    readonly id: string;
    readonly replicas?: number | undefined;
    readonly retentionMs?: number | undefined;
  },
): Promise<ClusterStatus> {
  const { name, servers } = settings;
  return withNats(settings, async (nats) => {
    const { info: known } = await nats.connection(connectMsMax);
    // NATS servers also announce members of their cluster that the ini file does not name.
    const count = Math.max(servers.length, known?.connect_urls?.length ?? 0);
    const copies = replicas ?? (count >= 3 ? 3 : 1);
    const made = await createStream(nats, {
      ...{ name, id, replicas: copies, retentionMs: retentionMs ?? 0 },
    });
    // An earlier call may have made it with another retention.
    const isOther = retentionMs !== undefined && retentionMs !== retentionMsOf(made.info);
    return statusOf(name, isOther ? await setRetention(nats, { name, retentionMs }) : made);
  });
}

/** Changes how long the stream has each message; 0 for always. Rejects as clusterStatus. */
export async function changeRetention(
  settings: Config['cluster'],
  retentionMs: number,
): Promise<ClusterStatus> {
  const { name } = settings;
  return withNats(settings, async (nats) =>
    statusOf(name, await setRetention(nats, { name, retentionMs })),
  );
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
  const { state } = info;
  const { messages, last_seq: end, first_ts: time = '', bytes } = state;
  // A stream without messages has 0 or the next sequence, and a time that means nothing.
  const first = messages === 0 ? end + 1 : state.first_seq;
  const since = messages === 0 ? null : new Date(time).toISOString();
  const retention = { retention_ms: retentionMsOf(info) };
  return {
    stream,
    log: id,
    first,
    since,
    end,
    bytes,
    ...retention,
    servers: serversOf(info),
  };
}
