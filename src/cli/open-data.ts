import { families } from '../families.ts';
import type { Config } from '../core/config/config.ts';
import { holdsData, isWritable } from '../core/log/folder/data-folder.ts';
import { type LayoutChanged, openStore } from '../core/log/open.ts';
import type { Notices } from '../core/log/shared/entry.ts';
import type { Store } from '../core/log/store.ts';
import { type Log, silentLog } from '../core/report/log.ts';
import { newId, now } from '../core/values/clock.ts';
import { Failure, failureFrom } from '../core/values/failure.ts';
import { type Sharing, joining } from '../modules/cluster/log/join.ts';
import { outboxPart } from '../modules/nodes/log/outbox-entries.ts';

/** The cluster that a data folder belongs to. */
interface ClusterData {
  /** Without servers, there is no cluster. */
  readonly settings: Config['cluster'];
  readonly log: Log;
  /** Gets the notices of the cluster; by default, they are ignored. */
  readonly notices?: Notices;
  /** Makes the history of the folder that of the cluster, and reports its rows. */
  readonly uploadProgress?: Sharing['uploadProgress'];
}

/**
 * Opens the store of a data folder, for the server or for a command; `readOnly` for a folder that
 * cannot be written, `isInUse` for one that an older version may use. Rejects as openStore does.
 */
export async function openData(
  folder: string,
  {
    readOnly = false,
    isInUse = false,
    cluster,
    node,
    layoutChanged,
  }: {
    readonly readOnly?: boolean;
    readonly isInUse?: boolean;
    readonly cluster?: ClusterData;
    /** The node whose settings bound the outbox. */
    readonly node?: Pick<Config['node'], 'outboxEntriesMax' | 'outboxBytesMax'>;
    readonly layoutChanged?: LayoutChanged;
  } = {},
): Promise<Store> {
  const sharing = cluster && sharingOf(cluster);
  const join = sharing && joining(sharing);
  const store = await openStore({
    ...{ folder, families, now, newId, readOnly, isInUse, join, layoutChanged },
  });
  if (node !== undefined) {
    const { outboxEntriesMax: entries, outboxBytesMax: bytes } = node;
    store.part(outboxPart).max = { entries, bytes };
  }
  return store;
}

/** How a store shares the log of a cluster; undefined without one. */
function sharingOf({ settings, log, notices, uploadProgress }: ClusterData): Sharing | undefined {
  if (settings.servers.length === 0) return undefined;
  let said = '';
  return {
    // A machine without a cluster does not load the client.
    async open(id) {
      const { openStreamLog } = await import('../modules/cluster/stream-log.ts');
      return openStreamLog({ settings, id, log, newId });
    },
    notice: async (notice) => notices?.receive(notice),
    failed(error) {
      const { message } = failureFrom(error);
      if (message === said) return;
      said = message;
      log.error({ err: error }, 'Cannot apply the changes of the cluster.');
    },
    ...(uploadProgress !== undefined && { uploadProgress }),
  };
}

/**
 * Opens the data of a configuration for a command that must not create a data folder. Rejects with
 * `not_found` for a folder without data, or as openData does.
 */
export async function openExistingData({ server, cluster }: Config): Promise<Store> {
  await requireData(server.data);
  return openData(server.data, { cluster: { settings: cluster, log: silentLog } });
}

/** As openExistingData, for a command that only reads: the folder need not be writable. */
export async function openDataToRead({ server }: Config): Promise<Store> {
  await requireData(server.data);
  return openData(server.data, { readOnly: !(await isWritable(server.data)) });
}

/** Rejects with `not_found` if a folder has no data; the message ends with `hint`. */
export async function requireData(folder: string, hint = ''): Promise<void> {
  if (await holdsData(folder)) return;
  throw new Failure('not_found', `there is no data in ${folder} yet${hint}`);
}
